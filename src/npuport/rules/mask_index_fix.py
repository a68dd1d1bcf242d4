"""What computes the same as an index with a mask, and does not wait for the number of places: ``masked_fill_`` in the
place of ``x[mask] = 0.0``, ``torch.where`` in that of ``x[mask] = y[mask]``, ``x[mask].sum()`` and ``x[mask].mean()``.

An index with a mask stands for the first dimensions of a tensor, and the others broadcast to the last ones: they are
the same where the mask is as large as the tensor. That is known of a mask that is made by comparing this very tensor,
or one that has its size; what it is compared with may broadcast, but a mask that is larger than its tensor is refused
as an index.
"""

from __future__ import annotations

import ast
import re

from npuport.findings import Applicability, Claim, Edit, Fix, Input
from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow, flow_of, function_around
from npuport.rules.fusable.values import Value, followed, same
from npuport.source.module import ancestors, parent

_LARGEST = 65504.0  # of float16: masked_fill_ refuses a number that its tensor cannot hold, where an index gives inf
_SAME_SIZE = {"abs", "detach", "float", "half", "bfloat16"}
_LIKE = {f"torch.{name}_like" for name in ("zeros", "ones", "empty", "full", "rand", "randn")}
_EACH_BY_ITSELF = {
    "cast",
    "copy",
    "neg",
    "square",
    "sqrt",
    "rsqrt",
    "sigmoid",
    "tanh",
    "erf",
    "cos",
    "sin",
    "silu",
    "gelu",
}
_CASES = (
    "size=(3,), scale=1.0, some=True",
    "size=(2, 5), scale=1.0, some=False",
    "size=(2, 1, 7), scale=4.0, some=True",
)
_OF_TWO = {"add", "sub", "mul", "div"}
_X, _SELECTED = Input("x", "tensor(*size, scale=scale)"), Input("selected", "mask(*size) & some")


def fix_of(index: ast.Subscript, mask: ast.Assign, context: Context) -> Fix | None:
    """The fix for an index with a mask that ``mask`` assigns to a name; None where it may mean something else."""
    function = function_around(index)
    statement = next((one for one in ancestors(index) if isinstance(one, ast.stmt)), None)
    if function is None or statement is None or not isinstance(index.value, ast.Name):
        return None
    if not _is_right_after(statement, mask):
        return None
    flow = flow_of(function, context)
    if not (_is_compared(mask.value, index.value, flow, context) and _keeps(index.slice, mask, statement, flow)):
        return None
    if isinstance(index.ctx, ast.Load):
        return _reduction(index, context)
    if not isinstance(statement, ast.Assign) or statement.targets != [index]:
        return None
    return _fill(index, statement, context) or _copy(index, statement, mask, flow, context)


def _fix(node: ast.AST, text: str, inputs: tuple[Input, ...], before: str, after: str, context: Context) -> Fix:
    edit = Edit(*context.module.lines.span(node), text)
    needs = "torch" if "torch." in text else None
    claim = Claim(inputs, before, after, _CASES)
    return context.fix([edit], Applicability.UNSAFE, f"put {text} there", needs=needs, claim=claim)


def _fill(write: ast.Subscript, statement: ast.Assign, context: Context) -> Fix | None:
    number = _number(statement.value)
    if number is None:
        return None
    segment = context.module.segment
    text = f"{segment(write.value)}.masked_fill_({segment(write.slice)}, {segment(statement.value)})"
    lines = "y = x.clone()\n{}\nreturn y"
    before, after = lines.format(f"y[selected] = {number}"), lines.format(f"y.masked_fill_(selected, {number})")
    return _fix(statement, text, (_X, _SELECTED), before, after, context)


def _copy(write: ast.Subscript, statement: ast.Assign, mask: ast.Assign, flow: Flow, context: Context) -> Fix | None:
    """``x[mask] = y[mask]``, where y has the size of x."""
    read, segment = statement.value, context.module.segment
    if not isinstance(read, ast.Subscript) or not isinstance(read.value, ast.Name):
        return None
    if ast.dump(read.slice) != ast.dump(write.slice) or not _is_compared(mask.value, read.value, flow, context):
        return None
    x, y, selected = segment(write.value), segment(read.value), segment(write.slice)
    lines = "z = x.clone()\n{}\nreturn z"
    before = lines.format("z[selected] = y[selected]")
    after = lines.format("z.copy_(torch.where(selected, y, z))")
    inputs = (_X, Input("y", "tensor(*size)"), _SELECTED)
    return _fix(statement, f"{x}.copy_(torch.where({selected}, {y}, {x}))", inputs, before, after, context)


# What is not selected is NaN in the claim: it must not count, nor have a gradient.
_NAN = 'y = torch.where(selected, x, float("nan"))\nreturn '


def _reduction(read: ast.Subscript, context: Context) -> Fix | None:
    """``x[mask].sum()`` and ``x[mask].mean()``."""
    method = parent(read)
    call = parent(method) if isinstance(method, ast.Attribute) else None
    if not isinstance(method, ast.Attribute) or not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    x, mask = context.module.segment(read.value), context.module.segment(read.slice)
    if method.attr == "sum":
        forms = [f"torch.where({m}, {value}, 0).sum()" for m, value in ((mask, x), ("selected", "y"))]
    elif method.attr == "mean" and not context.agnostic:  # the mean of float64 would be one of float32
        # A sum in float16 may be infinite where the mean is none.
        forms = [
            f"(torch.where({m}, {value}, 0).sum(dtype=torch.float32) / {counted}.sum()).to({value}.dtype)"
            for m, value, counted in (
                (mask, x, mask if mask.isidentifier() else f"({mask})"),
                ("selected", "y", "selected"),
            )
        ]
    else:
        return None
    return _fix(call, forms[0], (_X, _SELECTED), f"{_NAN}y[selected].{method.attr}()", f"{_NAN}{forms[1]}", context)


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


def _is_compared(made: ast.expr, tensor: ast.Name, flow: Flow, context: Context) -> bool:
    """Whether a mask is of comparisons alone, of all that gives this tensor its size, as it is when it is used.

    The mask is then at least as large as the tensor in each dimension, and one that is larger is no index of it.
    """
    value = flow.value(tensor)
    if value is None or any(_is_numpy(one) for one in followed(value, lambda one: one.inputs)):
        return False
    sides = [flow.value(_owner(side)) for one in _comparisons(made) or () for side in (one.left, *one.comparators)]
    compared = [root for side in sides if side is not None for root in _roots(side, flow, context)]
    wanted = _roots(value, flow, context)
    return bool(wanted) and all(any(same(root, other) for other in compared) for root in wanted)


def _roots(value: Value, flow: Flow, context: Context) -> list[Value]:
    """The values from which another has its size; numbers have none."""
    value = _begun(value)
    name = ""
    if value.op == "call" and isinstance(value.node, ast.Call):
        name = flow.name_of(value.node.func, context) or ""
    if value.inputs and (value.op in _EACH_BY_ITSELF or name in _LIKE):
        return _roots(value.first, flow, context)
    if name == "torch.nn.functional.cross_entropy" and _is_of_each(value):
        return _roots(value.inputs[1], flow, context)  # labels: of another size only where they are probabilities
    if value.op in _OF_TWO and len(value.inputs) == 2:
        return [root for one in value.inputs for root in _roots(one, flow, context)]
    return [] if value.op == "constant" else [value]


def _is_of_each(loss: Value) -> bool:
    """Whether a call of ``cross_entropy(scores, labels, …)`` gives a loss for each label."""
    assert isinstance(loss.node, ast.Call)
    return len(loss.node.args) == 2 and "reduction" in loss.named and loss.named["reduction"].constant == "none"


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


def _begun(value: Value) -> Value:
    """The tensor that a value was before something was written into it."""
    while value.op == "other" and value.node is None and len(value.inputs) == 2:
        value = value.inputs[0]
    return value
