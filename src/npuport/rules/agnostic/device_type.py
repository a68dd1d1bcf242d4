"""The constant of each converted module that names the device type the program runs on."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from npuport.findings import Edit
from npuport.rules.base import Context
from npuport.rules.settings import Settings
from npuport.source.module import ancestors

NAMES = ("DEVICE_TYPE", "ACCELERATOR_TYPE")
"""What the constant is called; the second where the module uses the first otherwise."""

PAIR = '("cuda", "npu")'
"""The device types for which a CUDA branch is meant after the conversion."""

# Since 2.6 torch.accelerator speaks for whatever device torch was built for or extended with.
_SINCE_ACCELERATOR = 'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"'
_BEFORE = (
    '"cuda" if torch.cuda.is_available() else "npu" if hasattr(torch, "npu") and torch.npu.is_available() else "cpu"'
)
# Before 2.5 torch does not load its device extensions by itself.
_GUARDED_IMPORT = ("try:", "    import torch_npu  # noqa: F401", "except ImportError:", "    pass")


@dataclass(frozen=True, slots=True)
class DeviceType:
    """How the module names the device type at a place, and the edit that defines it where nothing does yet."""

    name: str
    edits: tuple[Edit, ...] = ()


def definition(settings: Settings) -> str:
    """The value of the constant for a version of torch."""
    return _SINCE_ACCELERATOR if settings.torch_at_least("2.6") else _BEFORE


def device_type(at: ast.AST, context: Context) -> DeviceType | None:
    """The constant as ``at`` may use it; None where it is not defined yet when ``at`` runs, or is shadowed there."""
    scope = context.module.scope
    for name in NAMES:
        bound = scope.bindings.get(name, [])
        seen = context.scope(at).lookup(name)
        if bound and bound == seen and _is_ours(bound[0].node, context):
            later = context.module.lines.span(at)[0] > context.module.lines.span(bound[0].node)[1]
            return DeviceType(name) if later else None
        if not bound and not seen:
            return _defined_at(name, at, context)
    return None


def in_definition(node: ast.AST, context: Context) -> bool:
    """Whether ``node`` stands in the definition of the constant."""
    return any(_is_ours(around, context) for around in ancestors(node))


def _is_ours(node: ast.AST, context: Context) -> bool:
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    return context.module.segment(node.value) in (_SINCE_ACCELERATOR, _BEFORE)


def _defined_at(name: str, at: ast.AST, context: Context) -> DeviceType | None:
    place, has_torch = _place(context)
    if place is None:
        return None
    if context.module.lines.span(at)[0] < place:
        return None
    lines = [] if has_torch else ["import torch"]
    lines += ["", *_GUARDED_IMPORT] if not context.settings.torch_at_least("2.5") else []
    lines += ["", f"{name} = {definition(context.settings)}"]
    text = context.newline.join(lines) + context.newline
    if place and context.module.text[place - 1] not in "\r\n":
        text = context.newline + text  # the import is the last line, and has no line ending
    return DeviceType(name, (Edit(place, place, text),))


def _place(context: Context) -> tuple[int | None, bool]:
    """Where the constant goes, and whether torch is bound there.

    That is after the imports at the head of the module, and after the import that binds torch if the module has one;
    None where torch is imported under a condition, or another statement shares the line.
    """
    body = context.module.tree.body
    of_torch = next((statement for statement in body if _binds_torch(statement)), None)
    if of_torch is None and context.module.scope.bindings.get("torch"):
        return None, False
    last = max((s for s in (_head(body), of_torch) if s is not None), key=lambda s: s.lineno, default=None)
    if last is None:
        return 0, False
    line = last.end_lineno or last.lineno
    starts = context.module.lines.starts
    shared = any(s is not last and s.lineno <= line <= (s.end_lineno or s.lineno) for s in body)
    return (None if shared else starts[line] if line < len(starts) else len(context.module.text)), of_torch is not None


def _head(body: list[ast.stmt]) -> ast.stmt | None:
    """The last of the docstring and the imports with which a module begins."""
    last = None
    for index, statement in enumerate(body):
        docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not docstring and not isinstance(statement, ast.Import | ast.ImportFrom):
            break
        last = statement
    return last


def _binds_torch(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and any(
        alias.asname == "torch" or (alias.asname is None and alias.name.partition(".")[0] == "torch")
        for alias in statement.names
    )
