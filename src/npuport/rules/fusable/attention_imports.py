"""Imports of libraries that nothing uses any more once their calls are converted."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

from npuport.findings import Applicability, Edit, Fix
from npuport.rules.base import Context
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.rewriting import whole_lines, without
from npuport.source.module import parent

_SCOPES = (type(None), ast.FunctionDef, ast.AsyncFunctionDef)


def unused_import(node: ast.Import | ast.ImportFrom, modules: tuple[str, ...], context: Context) -> Fix | None:
    """The removal of what an import of a file or a function brings in from ``modules``, if a conversion left it unused.

    Imports under ``try`` and ``if`` stay: they tell the program what is there.
    """
    before = context.text_before
    around = parent(node)
    if before == context.module.text or context.settings.keep_lines or not isinstance(around, _SCOPES):
        return None
    if isinstance(node, ast.ImportFrom) and node.module not in modules:
        return None
    left: list[ast.alias] = []
    gone: list[ast.alias] = []
    used = _names_used(context.module.tree)
    for alias in node.names:
        of_library = isinstance(node, ast.ImportFrom) or alias.name in modules
        name = alias.asname or alias.name.partition(".")[0]
        once_used = re.search(rf"\b{re.escape(name)}[(.]", before) is not None
        unused = of_library and once_used and name not in used and not _is_exported(name, context)
        (gone if unused else left).append(alias)
    if not gone:
        return None
    start, end = context.module.lines.span(node)
    if left:
        kept = ", ".join(alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in left)
        head = f"from {node.module} import" if isinstance(node, ast.ImportFrom) else "import"
        return context.fix([Edit(start, end, f"{head} {kept}")], Applicability.UNSAFE)
    return without_statement(node, context)


def without_statement(node: ast.stmt, context: Context) -> Fix | None:
    """The removal of a statement; None where its lines hold another, or it is the only one of its block."""
    if len(getattr(parent(node), "body", [node, node])) < 2:
        return None
    try:
        at_head = Edit(*whole_lines(node, context), "")  # the empty lines there are not the import's
        edit = at_head if parent(node) is None else without(node, context)
        return context.fix([edit], Applicability.UNSAFE)
    except Unfit:
        return None


def _names_used(tree: ast.Module) -> set[str]:
    """Every name that is read, and every text that may be one, as in ``__all__``."""
    nodes = list(ast.walk(tree))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts | {node.id for node in nodes if isinstance(node, ast.Name)}


def _is_exported(name: str, context: Context) -> bool:
    """Whether another file of the project takes the name from this one, as far as names tell."""
    stem = PurePosixPath(context.module.path).stem
    module = re.escape(PurePosixPath(context.module.path).parent.name if stem == "__init__" else stem)
    taken = re.compile(rf"\b{module}\b[\s\S]*\b{re.escape(name)}\b")
    return any(
        path != context.module.path and name in text and taken.search(text) is not None
        for path, text in context.project.texts.items()
    )
