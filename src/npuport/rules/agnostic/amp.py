"""Mixed precision for the target "agnostic": ``torch.amp``, which takes the device type first."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from npuport.findings import Edit
from npuport.rules.agnostic.device_type import DeviceType, device_type
from npuport.rules.base import Context
from npuport.rules.cuda_chain import CudaUse
from npuport.source.module import parent

_FIRST, _KEYWORD = "first", "keyword"
# Where torch.amp's counterpart takes the device type (signatures of torch 2.13.0).
_PLACE = {"autocast": _FIRST, "GradScaler": _FIRST, "custom_fwd": _KEYWORD, "custom_bwd": _KEYWORD}
# torch.amp has autocast since 1.10, GradScaler since 2.3, and the decorators since 2.4.
_SINCE = {"autocast": "1.10", "GradScaler": "2.3", "custom_fwd": "2.4", "custom_bwd": "2.4"}
# torch.cuda.amp.autocast takes these in this order; torch.amp's in another.
_OF_AUTOCAST = ("enabled", "dtype", "cache_enabled")
_BEFORE_ARGUMENT = re.compile(r"(?:\s|#[^\r\n]*)*")


def counterpart(name: str, context: Context) -> str | None:
    """``torch.amp.X`` for a name of ``torch.cuda.amp`` that takes a device there; None for others."""
    last = name.rpartition(".")[2]
    known = name.startswith("torch.cuda.amp.") and last in _PLACE
    return f"torch.amp.{last}" if known and context.settings.torch_at_least(_SINCE[last]) else None


def amp_edits(use: CudaUse, context: Context) -> list[Edit] | None:
    """The edits for ``torch.cuda.amp.X`` written out, or through an alias of one of its modules."""
    new = counterpart(use.name, context)
    if new is None or use.lookup is not None or isinstance(use.node, ast.Name):
        return None
    if context.resolver.name(ast.Name("torch", ast.Load()), context.scope(use.node)) != "torch":
        return None
    given = use_edits(use.node, use.name, context)
    return [*given, Edit(*context.module.lines.span(use.node), new)] if given is not None else None


def use_edits(node: ast.expr, name: str, context: Context) -> list[Edit] | None:
    """The edits that give one mention of ``name`` (old or new) the device type: of a call, or of a decorator."""
    named = device_type(node, context)
    if named is None:
        return None
    by_keyword = _PLACE[name.rpartition(".")[2]] == _KEYWORD
    around = parent(node)
    if isinstance(around, ast.Call) and around.func is node:
        parameters = _OF_AUTOCAST if name.endswith(".autocast") else ()
        return _call_edits(around, named, parameters, by_keyword=by_keyword, context=context)
    if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef) and node in around.decorator_list:
        end = context.module.lines.span(node)[1]
        text = f"(device_type={named.name})" if by_keyword else f"({named.name})"
        return [*named.edits, Edit(end, end, text)]
    return None


def _call_edits(
    call: ast.Call, named: DeviceType, parameters: Sequence[str], *, by_keyword: bool, context: Context
) -> list[Edit] | None:
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    if any(keyword.arg in {"device", "device_type"} for keyword in call.keywords):
        return None
    edits = list(named.edits)
    if parameters:
        for argument, parameter in zip(call.args, parameters, strict=False):
            start = context.module.lines.span(argument)[0]
            edits.append(Edit(start, start, f"{parameter}="))
    if by_keyword and call.args:
        return None
    text = context.module.text
    opening = text.find("(", context.module.lines.span(call.func)[1]) + 1
    value = f"device_type={named.name}" if by_keyword else named.name
    if not call.args and not call.keywords:
        return [*edits, Edit(opening, opening, value)]
    first = _BEFORE_ARGUMENT.match(text, opening)
    place = first.end() if first else opening
    merged = [edit for edit in edits if edit.start == edit.end == place]
    if merged:  # one insertion at a place
        edits.remove(merged[0])
        return [*edits, Edit(place, place, f"{value}, {merged[0].new}")]
    return [*edits, Edit(place, place, f"{value}, ")]
