"""Names of ``torch.cuda`` for the target "agnostic": torch.accelerator has them, or the module of the device."""

from __future__ import annotations

import ast

from npuport.facts import accelerator_name
from npuport.findings import Edit
from npuport.rules.agnostic.device_type import NAMES, PAIR, device_type
from npuport.rules.agnostic.devices import LOOSE
from npuport.rules.base import Context
from npuport.rules.cuda_chain import CudaUse
from npuport.source.module import ancestors, in_annotation, parent

# What torch.cuda answers on a machine without CUDA, where torch.accelerator and the modules of other devices raise
# (measured on torch 2.13.0, CPU build); None: nothing happens.
_WITHOUT_DEVICE = {
    "torch.cuda.empty_cache": "None",
    "torch.cuda.manual_seed": "None",
    "torch.cuda.manual_seed_all": "None",
    "torch.cuda.seed": "None",
    "torch.cuda.seed_all": "None",
    "torch.cuda.memory_allocated": "0",
    "torch.cuda.memory_reserved": "0",
    "torch.cuda.max_memory_allocated": "0",
    "torch.cuda.max_memory_reserved": "0",
    "torch.cuda.memory_stats": "{}",
    "torch.cuda.is_bf16_supported": "False",
    "torch.cuda.is_initialized": "False",
    "torch.cuda.get_rng_state_all": "[]",
}
# Around these a conditional expression needs no parentheses.
_WHOLE = (ast.Call, ast.keyword, ast.Assign, ast.AnnAssign, ast.Return, ast.List, ast.Tuple, ast.Dict)
_ASKS = "torch.accelerator.is_available()"
_OTHERS = ("mps", "xpu", "hpu", "mlu", "musa")  # device types of other accelerators that code tells apart


def name_edits(use: CudaUse, context: Context) -> list[Edit] | None:
    """The edits that make one use hold on every device."""
    if use.lookup is not None or use.stored or use.name != use.fact.name or use.fact.npu_name is None:
        return None
    if not _torch_is_bound(use.node, context):
        return None
    if use.name == "torch.cuda.is_available" and _tells_others_apart(context):
        return _of_the_pair(use, context)
    known = accelerator_name(use.name)
    if known is not None and context.settings.torch_at_least(".".join(map(str, known.since))):
        edits = _called(use, known.accelerator_name, positional="by position only" in known.note, context=context)
        return _guarded(use, edits, _ASKS, context)
    if use.fact.status != "same" or use.fact.kind == "module" or use.name.startswith("torch.cuda.amp."):
        return None
    named = device_type(use.node, context)
    if named is None or not context.settings.torch_at_least("2.5"):
        return None
    around = parent(use.node)
    if not isinstance(around, ast.Call) or around.func is not use.node:
        edits = _handed_on(use, named.name, context)
        return [*named.edits, *edits] if edits is not None else None
    new = f"torch.get_device_module({named.name}){use.name.removeprefix('torch.cuda')}"
    asks = _ASKS if context.settings.torch_at_least("2.6") else f'{named.name} != "cpu"'
    edits = _guarded(use, [Edit(*context.module.lines.span(use.node), new)], asks, context)
    return [*named.edits, *edits] if edits is not None else None


def may_stay(use: CudaUse, context: Context) -> str:
    """Why a use needs no edit: "" where it does, or where nobody knows."""
    if use.lookup is None and use.fact.status != "missing" and in_annotation(use.top):
        return "an annotation only says this: torch has the name on every machine, so it may stay"
    if _is_fallback(use.top, context):
        return "this is the answer where the device at hand has none of this name, as on the CPU: it may stay"
    return ""


def _is_fallback(node: ast.expr, context: Context) -> bool:
    """Whether ``node`` is the default of ``getattr(torch.get_device_module(…), "…", …)``."""
    call = parent(node)
    if not isinstance(call, ast.Call) or len(call.args) != 3 or call.args[2] is not node:
        return False
    owner = call.args[0]
    return isinstance(owner, ast.Call) and context.name_of(owner.func) == "torch.get_device_module"


def _handed_on(use: CudaUse, device: str, context: Context) -> list[Edit] | None:
    """A name that is not called here: torch.cuda has it on every machine, the module of another device need not."""
    inner = use.name.removeprefix("torch.cuda.")
    lines, text = context.module.lines, context.module.segment(use.node)
    if "." in inner or "\n" in text or in_annotation(use.top) or _is_fallback(use.top, context):
        return None
    if _asked_already(use.node, context):
        return [Edit(*lines.span(use.node), f"torch.get_device_module({device}).{inner}")]
    return [Edit(*lines.span(use.node), f'getattr(torch.get_device_module({device}), "{inner}", {text})')]


def lookup_edits(use: CudaUse, context: Context) -> list[Edit] | None:
    """``getattr(torch.cuda, …)`` asks the module of the device at hand."""
    named = device_type(use.node, context)
    call = parent(use.top)
    owner = call.args[0] if isinstance(call, ast.Call) and call.args else None
    if named is None or owner is None or not context.settings.torch_at_least("2.5"):
        return None
    return [*named.edits, Edit(*context.module.lines.span(owner), f"torch.get_device_module({named.name})")]


def _torch_is_bound(node: ast.expr, context: Context) -> bool:
    return context.resolver.name(ast.Name("torch", ast.Load()), context.scope(node)) == "torch"


def _tells_others_apart(context: Context) -> bool:
    """Whether the file has branches for other accelerators, which torch.accelerator would take for CUDA's."""
    return any(
        f'"{other}"' in context.module.text
        or f"'{other}'" in context.module.text
        or f".{other}." in context.module.text
        for other in _OTHERS
    )


def _of_the_pair(use: CudaUse, context: Context) -> list[Edit] | None:
    """``torch.cuda.is_available()`` where an Apple or Intel device has a branch of its own."""
    call, named = parent(use.node), device_type(use.node, context)
    if named is None or not isinstance(call, ast.Call) or call.func is not use.node:
        return None
    start, end = context.module.lines.span(call)
    around = parent(call)
    if isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not):
        start = context.module.lines.span(around)[0]
        return [*named.edits, Edit(start, end, f"{named.name} not in {PAIR}")]
    text = f"{named.name} in {PAIR}"
    return [*named.edits, Edit(start, end, text if isinstance(around, LOOSE) else f"({text})")]


def _called(use: CudaUse, new: str, *, positional: bool, context: Context) -> list[Edit] | None:
    """The name itself, and its argument without the keyword where the new function takes it by position only."""
    edits = [Edit(*context.module.lines.span(use.node), new)]
    call = parent(use.node)
    if not isinstance(call, ast.Call) or call.func is not use.node:
        # A class or function that is handed on: only what has the same parameters may take its place.
        return None if positional else edits
    if positional:
        for keyword in call.keywords:
            if keyword.arg != "device" or call.args:
                return None
            start = context.module.lines.span(keyword)[0]
            edits.append(Edit(start, context.module.lines.span(keyword.value)[0], ""))
    return edits


def _guarded(use: CudaUse, edits: list[Edit] | None, asks: str, context: Context) -> list[Edit] | None:
    """The edits with the condition that keeps a CPU quiet where CUDA's own name was quiet."""
    otherwise = _WITHOUT_DEVICE.get(use.name)
    call = parent(use.node)
    if edits is None or otherwise is None or _asked_already(use.node, context):
        return edits
    if not isinstance(call, ast.Call) or call.func is not use.node:
        return None
    start, end = context.module.lines.span(call)
    statement = parent(call)
    if isinstance(statement, ast.Expr):
        return _before_statement(statement, edits, f"if {asks}: ", context)
    if isinstance(statement, _WHOLE):
        return [*edits, Edit(end, end, f" if {asks} else {otherwise}")]
    return [Edit(start, start, "("), *edits, Edit(end, end, f" if {asks} else {otherwise})")]


def _before_statement(statement: ast.Expr, edits: list[Edit], words: str, context: Context) -> list[Edit] | None:
    """``if …:`` before a statement that has its line to itself."""
    text, (start, end) = context.module.text, context.module.lines.span(statement)
    line = context.module.lines.starts[statement.lineno - 1]
    after = text[end:].partition("\n")[0].strip()
    if text[line:start].strip() or (after and not after.startswith("#")):
        return None
    indent = text[line:start]
    step = "\t" if "\t" in indent else "    "
    return [Edit(start, start, f"{words.rstrip()}{context.newline}{indent}{step}"), *edits]


def _asked_already(node: ast.AST, context: Context) -> bool:
    """Whether a condition around ``node`` asks for a device before it."""
    inner = node
    for around in ancestors(node):
        conditions: list[ast.expr] = []
        if isinstance(around, ast.If | ast.IfExp):
            body = around.body if isinstance(around, ast.If) else [around.body]
            conditions = [around.test] if inner in body else []
        elif isinstance(around, ast.BoolOp) and isinstance(around.op, ast.And):
            conditions = [value for value in around.values if _before(value, inner)]
        if any(_asks_for_device(condition, context) for condition in conditions):
            return True
        inner = around
    return False


def _before(one: ast.expr, other: ast.AST) -> bool:
    at = (getattr(other, "lineno", 0), getattr(other, "col_offset", 0))
    return (one.lineno, one.col_offset) < at


def _asks_for_device(condition: ast.expr, context: Context) -> bool:
    text = context.module.segment(condition)
    negated = isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not)
    return not negated and any(word in text for word in ("is_available()", "device_count()", "cuda", *NAMES))
