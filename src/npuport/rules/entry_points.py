"""Target "import": the one line that goes to the top of each script."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache

from npuport.findings import Applicability, Edit, Finding, Fix, Location, Severity
from npuport.rules.base import Context
from npuport.rules.mentions import has_words
from npuport.source.project import Project

LINE = "import npuport.auto  # must stay the first import: runs this script on the NPU where there is one"
_WORKS = re.compile(r"(?m)^(?:(?:for|while|with)\b|[\w.]+\()")


def entry_point_finding(context: Context, findings: Sequence[Finding]) -> Finding | None:
    """The finding that adds the import to a script; None for a module that is only imported, or needs nothing."""
    module = context.module
    if "npuport.auto" in module.text or not _is_script(context):
        return None
    if not findings and not (_imports_own_code(context) and _mentions_cuda(context.project)):
        return None
    body = module.tree.body
    after = 0
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        after = 1  # the docstring
    while after < len(body) and isinstance(body[after], ast.ImportFrom) and _is_future(body[after]):
        after += 1
    line = body[after].lineno if after < len(body) else 1
    for decorator in getattr(body[after], "decorator_list", []):
        line = min(line, decorator.lineno)
    at = module.lines.starts[line - 1]
    return Finding(
        code="NP001",
        name="entry-point-without-import",
        severity=Severity.ERROR,
        location=Location(module.path, line, 1, line, 1),
        message="this script needs npuport's import as its first, so that its CUDA code runs on the NPU",
        fix=Fix((Edit(at, at, LINE + context.newline),), Applicability.SAFE, "add the import"),
    )


def may_be_script(text: str) -> bool:
    """A quick look before parsing: whether ``entry_point_finding`` could take a file for a script."""
    return "__name__" in text or _WORKS.search(text) is not None


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _is_script(context: Context) -> bool:
    """Whether people start this file: it has a main guard, or does work at its top level, stands in no package and is
    imported by no other file."""
    tree = context.module.tree
    for statement in tree.body:
        if isinstance(statement, ast.If) and any(
            isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(statement.test)
        ):
            return True
    folder = posixpath.dirname(context.module.path)
    in_package = context.project.has(posixpath.join(folder, "__init__.py"))
    return any(map(_is_work, tree.body)) and not in_package and not _is_imported(context)


def _is_work(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    return isinstance(statement, ast.For | ast.While | ast.With)


def _is_imported(context: Context) -> bool:
    path = context.module.path
    stem = posixpath.basename(path).removesuffix(".py")
    line = re.compile(
        rf"(?m)^[ \t]*(?:from[ \t]+[\w.]*\b{re.escape(stem)}[ \t]+import|import[ \t].*\b{re.escape(stem)}\b)"
    )
    return any(line.search(text) for other, text in context.project.holding(stem) if other != path)


def _mentions_cuda(project: Project) -> bool:
    return _any_with_words(project.holding())


@lru_cache(maxsize=2)
def _any_with_words(files: tuple[tuple[str, str], ...]) -> bool:
    return any(has_words(text) for _, text in files)


def _imports_own_code(context: Context) -> bool:
    """Whether a script imports modules of its own project, which may hold the CUDA code."""
    for bindings in context.module.scope.bindings.values():
        for binding in bindings:
            if binding.target and context.project.locate(binding.target, context.module.path) is not None:
                return True
    return False
