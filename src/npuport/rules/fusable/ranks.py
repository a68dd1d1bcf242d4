"""How many dimensions a tensor has, as far as the function that makes it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from npuport.rules.fusable.values import SAME_NUMBERS, Value

_SAME_RANK = SAME_NUMBERS | {
    "dropout",
    "neg",
    "half",
    "pair",
    "linear",
    "layer_norm",
    "rms_norm",
    "chunk",
    "split",
    "cat",
}
_KEPT = {"transpose", "swapaxes", "swapdims", "contiguous", "to", "expand_as", "view_as", "roll", "repeat_interleave"}
_TO, _FROM = re.compile(r"->(?P<side>.*)"), re.compile(r"(?P<side>.*)->")
_SIZED = {"view", "reshape", "permute", "expand", "repeat"}
_DEPTH = 30


def rank_of(values: Iterable[Value | None]) -> int | None:
    """The number of dimensions of the first value that says it."""
    return next((found for value in values if value is not None and (found := _rank(value, _DEPTH)) is not None), None)


def rank_before(uses: Iterable[Value]) -> int | None:
    """The number of dimensions of a tensor that is used so."""
    for use in uses:
        call = use.node
        if use.op == "layout" and isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name == "permute" and len(call.args) > 1:
                return len(call.args)
            if name == "rearrange" and (found := _of_pattern(call, _FROM)) is not None:
                return found
    return None


def _rank(value: Value, depth: int) -> int | None:
    if depth == 0:
        return None
    if value.op == "layout" and value.node is not None:
        return _of_layout(value, depth)
    if value.op == "unbind":
        return _less(_inner(value, depth), 1)
    if value.op == "part":
        of_list = isinstance(value.detail, int) and value.inputs[0].op in {"chunk", "split"}
        if value.first.op == "call":  # q, k, v = map(lambda t: rearrange(t, "…"), (q, k, v))
            return _of_mapped(value.first.node)
        return _inner(value, depth) if of_list or value.first.op == "unbind" else _less(_inner(value, depth), 1)
    if value.op in {"choice", "add", "mul", "div", "sub"}:
        return next((found for one in value.inputs if (found := _rank(one, depth - 1)) is not None), None)
    return _inner(value, depth) if value.op in _SAME_RANK and value.inputs else None


def _inner(value: Value, depth: int) -> int | None:
    return _rank(value.first, depth - 1) if value.inputs else None


def _less(rank: int | None, by: int) -> int | None:
    return None if rank is None else rank - by


def _of_layout(value: Value, depth: int) -> int | None:
    node = value.node
    if isinstance(node, ast.Subscript):
        index = node.slice
        single = isinstance(index, ast.Constant) and isinstance(index.value, int)
        return _less(_inner(value, depth), 1 if single else 0) if not isinstance(index, ast.Tuple) else None
    if isinstance(node, ast.Attribute):
        return _inner(value, depth)
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "rearrange":
        return _of_pattern(node)
    if name in _SIZED:
        return _count(node)
    if name == "unsqueeze":
        return _less(_inner(value, depth), -1)
    if name == "squeeze" and node.args:
        return _less(_inner(value, depth), 1)
    return _inner(value, depth) if name in _KEPT else None


def _of_mapped(node: ast.expr | None) -> int | None:
    """The rank of what ``map(lambda t: …, …)`` gives."""
    if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Lambda):
        return None
    made: ast.expr = node.args[0].body
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in _KEPT:
        made = made.func.value
    name = getattr(made.func, "attr", "") if isinstance(made, ast.Call) else ""
    if isinstance(made, ast.Call) and name in _SIZED:
        return _count(made)
    return _of_pattern(made)


def _count(call: ast.Call) -> int | None:
    """The number of sizes that ``view`` and its like are given."""
    sizes = call.args[0].elts if call.args and isinstance(call.args[0], ast.Tuple | ast.List) else call.args
    return len(sizes) if len(sizes) > 1 and not any(isinstance(one, ast.Starred) for one in sizes) else None


def _of_pattern(node: ast.expr | None, side: re.Pattern[str] = _TO) -> int | None:
    """The rank on one side of a pattern of einops: what stands in parentheses is one dimension."""
    texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)] if node is not None else []
    for text in texts:
        found = side.search(text) if isinstance(text, str) else None
        if found is not None and "..." not in found["side"]:
            return len(re.sub(r"\([^)]*\)", "x", found["side"]).split())
    return None
