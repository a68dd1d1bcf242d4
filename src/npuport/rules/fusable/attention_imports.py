"""Imports of libraries that nothing uses any more once their calls are converted."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

from npuport.findings import Applicability, Edit, Fix
from npuport.rules.base import Context
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.rewriting import whole_lines
from npuport.source.module import parent


def unused_import(node: ast.Import | ast.ImportFrom, modules: tuple[str, ...], context: Context) -> Fix | None:
    """The removal of what an import at the head of the file brings in from ``modules``, if a conversion left it unused.

    Imports under ``try`` and ``if`` stay: they tell the program what is there.
    """
    before, now = context.text_before, context.module.text
    if before == now or context.settings.keep_lines or parent(node) is not None:
        return None
    if isinstance(node, ast.ImportFrom) and node.module not in modules:
        return None
    left: list[ast.alias] = []
    gone: list[ast.alias] = []
    for alias in node.names:
        of_library = isinstance(node, ast.ImportFrom) or alias.name in modules
        name = alias.asname or alias.name
        used_before, used_now = (len(re.findall(rf"\b{re.escape(name)}\b", text)) for text in (before, now))
        (gone if of_library and used_now == 1 < used_before and not _is_exported(name, context) else left).append(alias)
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
        return context.fix([Edit(*whole_lines(node, context), "")], Applicability.UNSAFE)
    except Unfit:
        return None


def _is_exported(name: str, context: Context) -> bool:
    """Whether another file of the project takes the name from this one, as far as names tell."""
    stem = PurePosixPath(context.module.path).stem
    module = re.escape(PurePosixPath(context.module.path).parent.name if stem == "__init__" else stem)
    taken = re.compile(rf"\b{module}\b[\s\S]*\b{re.escape(name)}\b")
    return any(
        path != context.module.path and name in text and taken.search(text) is not None
        for path, text in context.project.texts.items()
    )
