"""What is hidden from, or added to, the scores of an attention, as a fused call takes it: one mask, True takes part."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from npuport.rules.base import Context
from npuport.rules.fusable.attention_steps import Step, flat, part
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.values import is_low

_OPPOSITE: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<",
}  # fmt: skip


_SAME = {"view", "bool", "to", "unsqueeze", "expand"}


@dataclass(frozen=True)
class Mask:
    """``text`` is the expression, None for no mask; ``in_full`` says also when it is None, where ``text`` is so itself.
    ``causal`` stands for a mask that hides what comes later.
    """

    text: str | None = None
    in_full: str | None = None
    is_bool: bool = True
    causal: bool = False


def mask_of(on_scores: Sequence[Step], flow: Flow, context: Context) -> Mask:
    """The mask of an attention.

    Raises:
        Unfit: for steps that are neither mask, bias nor scale.
    """
    keep: list[tuple[str, Step]] = []
    added: list[tuple[str, Step]] = []
    causal = False
    for step in on_scores:
        if step.op in {"masked_fill", "where"}:
            hidden, told_to_keep = told(step)
            if is_causal(hidden, told_to_keep, flow) and step.condition is None:
                causal = True
            keep.append((flat(hidden, context) if told_to_keep else keeps(hidden, context), step))
        elif step.op == "add" and len(step.operands) == 1:
            added.append((flat(step.operands[0], context), step))
        elif step.op not in {"cast", "copy", "mul", "div"}:
            raise Unfit(f"the scores go through {_name(step)}")
    if causal and len(keep) == 1 and not added:
        return Mask(causal=True)
    return _together(keep, added, context)


def _together(keep: list[tuple[str, Step]], added: list[tuple[str, Step]], context: Context) -> Mask:
    parts = keep or added
    if not parts:
        return Mask()
    if (keep and added) or any(step.condition is not None for _, step in parts[1:]):
        raise Unfit("several masks, which one fused call cannot take as they are")
    if len(parts) > 1 and any(step.condition is not None for _, step in parts):
        raise Unfit("several masks, some of them on a condition")
    joint = " & " if keep else " + "
    text = joint.join(f"({one})" if len(parts) > 1 else one for one, _ in parts)
    condition = parts[0][1].condition
    in_full = text if condition is None else f"{part(text)} if {part(flat(condition, context))} else None"
    itself = condition is not None and ast.unparse(condition) == f"{text} is not None"
    return Mask(text if itself else in_full, in_full, bool(keep))


def told(step: Step) -> tuple[ast.expr, bool]:
    """The bool tensor of a step, and whether True takes part.

    Raises:
        Unfit: when what is put in is not known to be low.
    """
    value = step.value
    if step.op == "masked_fill":
        hidden = step.named.get("mask") or (step.operands[0] if step.operands else None)
        fill = value.inputs[2] if len(value.inputs) > 2 else value.named.get("value")
        told_to_keep = False
    else:
        hidden = step.operands[0] if step.operands else None
        told_to_keep = step.scores_at == 1
        other = 2 if told_to_keep else 1
        fill = value.inputs[other] if len(value.inputs) > other else None
        if step.scores_at == 0:
            raise Unfit("where is called as a method")
    if hidden is None or fill is None or not is_low(fill):
        raise Unfit("what hidden scores become is not seen to be a large negative number")
    return hidden, told_to_keep


def keeps(hidden: ast.expr, context: Context) -> str:
    """The opposite of a bool tensor."""
    if isinstance(hidden, ast.Compare) and len(hidden.ops) == 1 and type(hidden.ops[0]) in _OPPOSITE:
        left, right = flat(hidden.left, context), flat(hidden.comparators[0], context)
        return f"{left} {_OPPOSITE[type(hidden.ops[0])]} {right}"
    if isinstance(hidden, ast.UnaryOp) and isinstance(hidden.op, ast.Invert):
        return flat(hidden.operand, context)
    if isinstance(hidden, ast.Call) and isinstance(hidden.func, ast.Attribute) and hidden.func.attr == "logical_not":
        return flat(hidden.func.value, context)
    atom = isinstance(hidden, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return f"~{flat(hidden, context)}" if atom else f"~({flat(hidden, context)})"


def is_causal(hidden: ast.expr, told_to_keep: bool, flow: Flow) -> bool:
    """Whether a mask is seen to hide from each query exactly the keys after it.

    That is ``tril(ones(T, T))`` == 0 or ``triu(ones(T, T), 1)``, made here or as a buffer of the class and cut to
    [:T, :T].
    """
    keeps_lower = told_to_keep
    node = hidden
    while True:
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
            if not (isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value == 0):
                return False
            node, keeps_lower = node.left, not keeps_lower
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            node, keeps_lower = node.operand, not keeps_lower
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
            node = node.func.value
        else:
            break
    if isinstance(node, ast.Name):
        given = given_to(node.id, flow.function)
        return given is not None and is_causal(given, keeps_lower, flow)
    if isinstance(node, ast.Subscript):
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        buffer = _buffer(node.value, flow)
        square = len(index) >= 2 and ast.unparse(index[-1]) == ast.unparse(index[-2]) and _from_start(index[-1])
        return square and buffer is not None and _is_triangle(buffer, keeps_lower)
    return _is_triangle(node, keeps_lower)


def _from_start(index: ast.expr) -> bool:
    return isinstance(index, ast.Slice) and index.lower is None and index.step is None and index.upper is not None


def _buffer(node: ast.expr, flow: Flow) -> ast.expr | None:
    """What ``self.register_buffer(name, …)`` of the class gives the attribute."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or node.value.id != "self":
        return None
    around = flow.scope.enclosing_class()
    if around is None:
        return None
    for call in ast.walk(around.node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "register_buffer":
            name = call.args[0] if call.args else None
            if isinstance(name, ast.Constant) and name.value == node.attr and len(call.args) > 1:
                return _without_methods(call.args[1], around.node)
    return None


def _without_methods(node: ast.expr, within: ast.AST) -> ast.expr:
    """A tensor before its view and its type; a name that is given once is what it is given."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    return given_to(node.id, within) or node if isinstance(node, ast.Name) else node


def given_to(name: str, within: ast.AST) -> ast.expr | None:
    """What a name is given, if that is said once."""
    given = [
        one.value
        for one in ast.walk(within)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one.targets[0].id == name
    ]
    return given[0] if len(given) == 1 else None


def _is_triangle(node: ast.expr, keeps_lower: bool) -> bool:
    """``torch.tril(torch.ones(T, T))`` where it tells what is kept, ``torch.triu(torch.ones(T, T), 1)`` where not."""
    node = _without_methods(node, node)
    if isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    is_function = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
    ones = node.args[0] if is_function and node.args else node.func.value
    rest = node.args[1:] if is_function else node.args
    diagonal = next((one.value for one in node.keywords if one.arg == "diagonal"), rest[0] if rest else None)
    offset = ast.unparse(diagonal) if diagonal is not None else "0"
    return (name, offset, keeps_lower) in {("tril", "0", True), ("triu", "1", False)} and _is_square_of_ones(ones)


def _is_square_of_ones(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("ones"):
        return False
    sizes = node.args[0].elts if node.args and isinstance(node.args[0], ast.Tuple | ast.List) else node.args
    texts = [ast.unparse(one) for one in sizes]
    return len(texts) >= 2 and texts[-1] == texts[-2]


def _name(step: Step) -> str:
    if step.op == "call":
        return f"{str(step.value.detail).rpartition('.')[2]}()"
    return {
        "layout": "a change of shape",
        "clamp": "clamp",
        "tanh": "tanh",
        "sub": "a subtraction",
        "dropout": "a dropout",
    }.get(step.op, "steps that a fused call does not have")
