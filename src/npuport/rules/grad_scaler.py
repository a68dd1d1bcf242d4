"""Which gradient scaler takes the place of CUDA's, and the edits that put PyTorch's own there.

``torch.amp.GradScaler("npu")`` works with every optimizer but a fused AdamW (NP657) and loads the states that CUDA's
scaler saved; it takes the device first. torch_npu's class is for chips that saturate instead of
giving Inf, for torch before 2.3, and for code that hands the class itself on, where nobody could add the device.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from npuport.facts import chip
from npuport.findings import Edit
from npuport.rules.base import Context
from npuport.rules.cuda_chain import CudaUse, edits_to
from npuport.rules.settings import Settings
from npuport.source.module import ancestors, in_annotation, parent
from npuport.source.project import Project

UPSTREAM = "torch.amp.GradScaler"
UPSTREAM_NAMES = frozenset({UPSTREAM, "torch.amp.grad_scaler.GradScaler"})
CUDA_NAMES = frozenset({"torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"})
NPU_NAMES = frozenset(
    f"{owner}.{name}"
    for owner in ("torch.npu", "torch_npu.npu")
    for name in ("amp.GradScaler", "amp.grad_scaler.GradScaler")
)
HANDED_ON = f"; {UPSTREAM} takes the device first, and nobody can add it where the class is handed on"
"""Why torch_npu's class takes the place of CUDA's where PyTorch's own would do."""

_CUDA_MODULES = frozenset(name.rpartition(".")[0] for name in CUDA_NAMES)

_OPENING = re.compile(r"[\s)]*\(")
_BEFORE_ARGUMENT = re.compile(r"(?:\s|#[^\r\n]*)*")
_FUSED = re.compile(r"(?<![\w.])fused\s*=(?!=)(?!\s*(?:False|None)\b)|[\"']fused[\"']")


def saturates(settings: Settings) -> bool:
    """Whether the chip clips overflow to the largest finite number, so that only its status flag shows it."""
    target = chip(settings.chip)
    return target is not None and target.overflow == "saturation"


def prefers_upstream(settings: Settings) -> bool:
    """Whether PyTorch's own scaler does all that is needed; it takes a device from torch 2.3 on."""
    return settings.torch_at_least("2.3") and chip(settings.chip) is not None and not saturates(settings)


def has_fused_optimizers(project: Project) -> bool:
    """Whether the project's text creates fused optimizers, or may."""
    return _any_fused(project.holding("fused", "optim"))


@lru_cache(maxsize=1)
def _any_fused(files: tuple[tuple[str, str], ...]) -> bool:
    return any(_FUSED.search(text) for _, text in files)


# -- what a program does with the class ------------------------------------------------------------------------------


def is_created(node: ast.expr, context: Context) -> bool:
    """Whether a mention of the class is called, or is what ``functools.partial`` will call."""
    around = parent(node)
    return isinstance(around, ast.Call) and (around.func is node or _is_partial(node, around, context))


def only_asks(node: ast.expr, context: Context) -> bool:
    """Whether a mention of the class holds for every scaler: torch_npu's is a subclass of PyTorch's."""
    around = parent(node)
    if isinstance(around, ast.Attribute):
        return isinstance(around.ctx, ast.Load) and not around.attr.startswith("__")
    if isinstance(around, ast.If | ast.IfExp | ast.While | ast.Assert):
        return around.test is node
    if isinstance(around, ast.Compare):
        others = [part for part in (around.left, *around.comparators) if part is not node]
        return all(_is_none(part) or _is_type_of(part, context) for part in others)
    top: ast.expr = node
    while isinstance(around := parent(top), ast.Subscript | ast.Tuple | ast.List | ast.BinOp):
        top = around
    if isinstance(around, ast.Call):
        name = context.name_of(around.func)
        place = {"builtins.isinstance": 1, "builtins.issubclass": 1, "typing.cast": 0}.get(name or "")
        return place is not None and len(around.args) > place and around.args[place] is top
    return in_annotation(node)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_type_of(node: ast.expr, context: Context) -> bool:
    return isinstance(node, ast.Call) and context.name_of(node.func) == "builtins.type"


def _is_partial(node: ast.expr, call: ast.Call, context: Context) -> bool:
    return bool(call.args) and call.args[0] is node and context.name_of(call.func) == "functools.partial"


# -- edits -----------------------------------------------------------------------------------------------------------


def device_edit(call: ast.Call, context: Context) -> Edit | None:
    """``"npu"`` becomes the first argument of a call; None where the source hides its parenthesis."""
    text = context.module.text
    opening = _OPENING.match(text, context.module.lines.span(call.func)[1])
    if opening is None or any(isinstance(around, ast.JoinedStr) for around in ancestors(call)):
        return None
    if not call.args and not call.keywords:
        return Edit(opening.end(), opening.end(), '"npu"')
    first = _BEFORE_ARGUMENT.match(text, opening.end())
    place = first.end() if first else opening.end()
    return Edit(place, place, '"npu", ')


def _creation_edits(node: ast.expr, context: Context) -> list[Edit] | None:
    """The device for a mention of the class that ``is_created``; [] where the call names one."""
    around = parent(node)
    assert isinstance(around, ast.Call)
    if any(keyword.arg == "device" for keyword in around.keywords):
        return []
    if around.func is node:
        edit = device_edit(around, context)
        return [edit] if edit is not None else None
    end = context.module.lines.span(node)[1]
    after = re.compile(r"\s*([,)])").match(context.module.text, end)
    closes = after is not None and after[1] == ")" and after.end() != context.module.lines.span(around)[1]
    return [Edit(end, end, ', "npu"')] if after is not None and not closes else None  # a parenthesis of the name's own


def chain_edits(use: CudaUse, context: Context) -> list[Edit] | None:
    """The edits that make ``torch.cuda.amp.GradScaler``, written out or through an alias of its module, PyTorch's own.

    None where torch_npu's class takes its place: the class is handed on, the settings want it so, or the source shows
    no plain name.
    """
    if use.fact.name not in CUDA_NAMES or use.lookup is not None or isinstance(use.node, ast.Name) or use.stored:
        return None
    created = is_created(use.node, context)
    if not prefers_upstream(context.settings) or not (created or only_asks(use.node, context)):
        return None
    new = use.fact.name.replace("torch.cuda.amp", "torch.amp") if use.token is not None else UPSTREAM
    edits = edits_to(use, new, context) or _edits_with_torch(use, context)
    if not edits or not created:
        return edits or None
    device = _creation_edits(use.node, context)
    return [*edits, *device] if device is not None else None


def _edits_with_torch(use: CudaUse, context: Context) -> list[Edit]:
    """``amp.GradScaler`` in a file that lacks ``import torch``, which comes with the edits."""
    start, end = context.module.lines.span(use.node)
    module_alias = isinstance(use.node, ast.Attribute) and context.name_of(use.node.value) in _CUDA_MODULES
    unbound = not context.scope(use.node).lookup("torch") and context.settings.torch_at_least("2.5")
    if use.token is not None or not module_alias or not unbound or "\n" in context.module.text[start:end]:
        return []
    return list(context.fix([Edit(start, end, UPSTREAM)], needs="torch").edits)


def class_alias(local: str, context: Context) -> tuple[list[ast.ImportFrom], list[Edit]] | None:
    """The imports that bind the variable ``local`` to CUDA's scaler, and the edits of all that the file does with it.

    These are right together only. None where torch_npu's class takes its place.
    """
    module = context.module
    if not prefers_upstream(context.settings):
        return None
    imports: list[ast.ImportFrom] = []
    mentions: list[ast.Name] = []
    upstream_too = exported = False
    for node in module.nodes(module.lines.lines_naming(local)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _imported_as(local, node):
                if name not in CUDA_NAMES | UPSTREAM_NAMES:
                    return None
                upstream_too |= name in UPSTREAM_NAMES
                imports += [node] if isinstance(node, ast.ImportFrom) and name in CUDA_NAMES else []
                exported |= not context.scope(node).is_function
        elif isinstance(node, ast.Global):
            exported = True
        elif isinstance(node, ast.Name) and node.id == local:
            mentions.append(node)
        elif isinstance(node, _BINDING) and local in (getattr(node, "name", None), getattr(node, "arg", None)):
            return None  # a class, function or parameter of that name
    if any(len(CUDA_NAMES.intersection(_imported(node))) != 1 for node in imports):
        return None
    edits = _edits_of_mentions(mentions, context, upstream_too=upstream_too)
    if edits is None or (exported and handed_on(local, context, used=bool(mentions))):
        return None
    return imports, edits


_BINDING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.ExceptHandler, ast.pattern)


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    owner = "." * node.level + (node.module or "") + "." if isinstance(node, ast.ImportFrom) else ""
    return [f"{owner}{alias.name}" for alias in node.names]


def _imported_as(local: str, node: ast.Import | ast.ImportFrom) -> list[str]:
    locals_ = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    return [name for name, bound in zip(_imported(node), locals_, strict=True) if bound == local]


def _edits_of_mentions(mentions: list[ast.Name], context: Context, *, upstream_too: bool) -> list[Edit] | None:
    edits: list[Edit] = []
    for node in mentions:
        around = parent(node)
        if not isinstance(node.ctx, ast.Load):
            if not (isinstance(around, ast.Assign) and _is_none(around.value)):
                return None
        elif is_created(node, context):
            assert isinstance(around, ast.Call)
            if upstream_too and around.func is node and around.args:
                if not isinstance(around.args[0], ast.Constant) or not isinstance(around.args[0].value, str):
                    return None  # a device for one of the imported classes, a scale for the other
                continue
            device = _creation_edits(node, context)
            if device is None:
                return None
            edits += device
        elif not only_asks(node, context):
            return None
    return edits


def handed_on(local: str, context: Context, *, used: bool) -> bool:
    """Whether another module may take the class from this one."""
    here, text = context.module.path, context.module.text
    if not used and here.rpartition("/")[2] == "__init__.py":
        return True  # what else would it be imported for
    public = "__all__" in text
    if public and re.search(rf"[\"']{re.escape(local)}[\"']", text):
        return True
    module = here.rpartition("/")[2].removesuffix(".py")
    if module == "__init__":
        module = ""  # a sibling writes ``from . import``
    return any(
        _takes(local, here, path, context.project, stars=not public)
        for path, other in context.project.holding(module)
        if path != here and (local in other or (not public and "import *" in other))
    )


def _takes(local: str, owner: str, path: str, project: Project, *, stars: bool) -> bool:
    """Whether the module at ``path`` gets the name ``local`` from the one at ``owner``, if need be with all others."""
    module = project.module(path)
    if module is None:
        return False
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        origin = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            joint = "." if origin and not origin.endswith(".") else ""
            target = origin if alias.name == "*" else f"{origin}{joint}{alias.name}"
            located = project.locate(target, path)
            if located is None or located[0] != owner:
                continue
            if (alias.name == "*" and stars) or located[1] == local or (not located[1] and f".{local}" in module.text):
                return True
    return False
