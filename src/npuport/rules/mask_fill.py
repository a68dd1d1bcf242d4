"""``x.masked_fill_(mask, 0.0)`` in the place of ``x[mask] = 0.0``, where both are known to mean the same.

An index with a mask stands for the first dimensions of a tensor, and masked_fill_ broadcasts to the last ones: they are
the same where the mask is as large as the tensor. That is known of a mask that is made by comparing this very tensor;
what it is compared with may broadcast, but a mask that is larger than its tensor is refused as an index.
"""

from __future__ import annotations

import ast
import re

from npuport.findings import Applicability, Claim, Edit, Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow, flow_of, function_around
from npuport.rules.fusable.values import Value, followed
from npuport.source.module import parent

_LARGEST = 65504.0  # of float16: masked_fill_ refuses a number that its tensor cannot hold, where an index gives inf
_SAME_SIZE = {"abs", "detach", "float", "half", "bfloat16"}
_CASES = ("size=(3,), scale=1.0", "size=(2, 5), scale=1.0", "size=(2, 1, 7), scale=4.0")


def masked_fill(write: ast.Subscript, mask: ast.Assign, context: Context) -> Fix | None:
    """The fix for a write through a mask that ``mask`` assigns to a name; None where it may mean something else."""
    statement = parent(write)
    function = function_around(write)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or function is None:
        return None
    if not isinstance(write.value, ast.Name) or not _is_right_after(statement, mask):
        return None
    flow = flow_of(function, context)
    number = _number(statement.value)
    if number is None or not (
        _is_compared(mask.value, write.value, flow) and _keeps(write.slice, mask, statement, flow)
    ):
        return None
    segment = context.module.segment
    text = f"{write.value.id}.masked_fill_({segment(write.slice)}, {segment(statement.value)})"
    edit = Edit(*context.module.lines.span(statement), text)
    return context.fix([edit], Applicability.UNSAFE, f"put {text} there", claim=_claim(number))


def _claim(number: str) -> Claim:
    lines = "y = x.clone()\n{}\nreturn y"
    return Claim(
        inputs=(Input("x", "tensor(*size, scale=scale)"), Input("selected", "mask(*size)")),
        before=lines.format(f"y[selected] = {number}"),
        after=lines.format(f"y.masked_fill_(selected, {number})"),
        cases=_CASES,
    )


def _is_right_after(statement: ast.stmt, mask: ast.stmt) -> bool:
    """Whether both stand in one block, the mask first."""
    around = parent(statement)
    blocks = (getattr(around, name, None) for name in ("body", "orelse", "finalbody"))
    return any(
        isinstance(block, list) and statement in block and mask in block[: block.index(statement)] for block in blocks
    )


def _number(node: ast.expr) -> str | None:
    """A number that every dtype of a tensor takes, or an infinity, as it is written; None for anything else."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    text = ast.unparse(inner)
    is_plain = isinstance(inner, ast.Constant) and isinstance(inner.value, int | float) and abs(inner.value) <= _LARGEST
    return ast.unparse(node) if is_plain or text in ("float('-inf')", "float('inf')") else None


def _keeps(index: ast.expr, mask: ast.Assign, statement: ast.stmt, flow: Flow) -> bool:
    """Whether an index is still the mask that was assigned, or what is not in it."""
    name = index.operand if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert) else index
    now = flow.names_before.get(id(statement), {}).get(name.id) if isinstance(name, ast.Name) else None
    return now is not None and now is flow.value(mask.value)


def _is_compared(made: ast.expr, tensor: ast.Name, flow: Flow) -> bool:
    """Whether a mask is of comparisons alone, one of them of this tensor as it is when it is written to."""
    comparisons = _comparisons(made)
    wanted = _begun(flow.value(tensor))
    sides = [side for one in comparisons or () for side in (one.left, *one.comparators)]
    if wanted is None or any(_is_numpy(one) for one in followed(wanted, lambda value: value.inputs)):
        return False
    return any(isinstance(side, ast.Name) and _begun(flow.value(side)) is wanted for side in map(_owner, sides))


def _comparisons(made: ast.expr) -> list[ast.Compare] | None:
    if isinstance(made, ast.Compare):
        numbers = (side.value for side in made.comparators if isinstance(side, ast.Constant))
        is_plain = len(made.ops) == 1 and isinstance(
            made.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq
        )
        return [made] if is_plain and all(isinstance(one, int | float) for one in numbers) else None
    if isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.Invert):
        return _comparisons(made.operand)
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.BitAnd | ast.BitOr | ast.BitXor):
        left, right = _comparisons(made.left), _comparisons(made.right)
        return [*left, *right] if left is not None and right is not None else None
    return None


def _owner(side: ast.expr) -> ast.expr:
    """``x`` in ``x.abs()``."""
    while isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr in _SAME_SIZE:
        side = side.func.value
    return side


def _is_numpy(value: Value) -> bool:
    return isinstance(value.node, ast.Call) and re.search(r"\b(?:numpy|np)\b", ast.unparse(value.node.func)) is not None


def _begun(value: Value | None) -> Value | None:
    """The tensor that a value was before something was written into it."""
    while value is not None and value.op == "other" and value.node is None and len(value.inputs) == 2:
        value = value.inputs[0]
    return value
