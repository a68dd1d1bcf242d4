"""The number that the scores of an attention are multiplied with."""

from __future__ import annotations

import ast
import re

from npuport.rules.base import Context
from npuport.rules.fusable.attention_steps import Step, Steps, flat
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit

_LIKE_A_SCALE = re.compile(r"(?i)scal|sqrt|norm_fact|inv_norm|temperature|^d_?k|head_dim|dim_head|head_size")
_ROOTS = {"math.sqrt", "numpy.sqrt"}
_NUMBERS = _ROOTS | {"float", "int", "len", "math.pow", "builtins.float", "builtins.int", "builtins.len"}
ALWAYS = "1.0"


def scale_of(steps: Steps, factors: tuple[str, str], flow: Flow, context: Context) -> str | None:
    """The scale as an expression; None for 1/√(size of a head), which is the default of the fused call.

    Raises:
        Unfit: for a scale that may be a tensor, or that is also of the mask.
    """
    if steps.product.op == "baddbmm":
        return _of_baddbmm(steps.product, flow, context)
    found: str | None = ALWAYS
    masked = False
    for step in steps.on_scores:
        masked = masked or step.op in {"add", "sub", "where"}
        if step.op not in {"mul", "div"}:
            continue
        if masked or found != ALWAYS or step.condition is not None:
            raise Unfit("the scale is not applied to the product alone, once and always")
        if len(step.operands) != 1 or (step.op == "div" and step.scores_at != 0):
            raise Unfit("the scores are divided otherwise than by one number")
        found = _number(step.operands[0], step.op == "div", factors, flow, context)
    return found


def _number(node: ast.expr, divides: bool, factors: tuple[str, str], flow: Flow, context: Context) -> str | None:
    if _is_root_of_size(node, divides, factors, flow):
        return None
    if not _is_number(node, flow, context):
        raise Unfit(f"the scale, {flat(node, context)}, may be a tensor")
    if not divides:
        return flat(node, context)
    atom = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Constant)
    return f"1 / {flat(node, context)}" if atom else f"1 / ({flat(node, context)})"


def _of_baddbmm(product: Step, flow: Flow, context: Context) -> str:
    beta, alpha = product.named.get("beta"), product.named.get("alpha")
    if not isinstance(beta, ast.Constant) or beta.value != 0:
        raise Unfit("baddbmm adds a bias")
    if alpha is None:
        return ALWAYS
    if not _is_number(alpha, flow, context):
        raise Unfit(f"the scale, {flat(alpha, context)}, may be a tensor")
    return flat(alpha, context)


def _is_number(node: ast.expr, flow: Flow, context: Context) -> bool:
    """Whether an expression is a number of Python, and no tensor."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand, flow, context)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left, flow, context) and _is_number(node.right, flow, context)
    if isinstance(node, ast.Call):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return method == "size" or (flow.name_of(node.func, context) or method) in _NUMBERS
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        given = flow.assigned_on_self(node.attr)
        if given:
            return all(value is not None and _is_number_there(value) for value in given)
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return _LIKE_A_SCALE.search(name) is not None


def _is_number_there(value: ast.expr) -> bool:
    """Whether a value given elsewhere is a number: nothing in it is a call that makes or moves a tensor."""
    if isinstance(value, ast.IfExp | ast.BoolOp):
        parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else value.values
        return all(map(_is_number_there, parts))
    calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    names = {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in calls}
    return names <= {"sqrt", "float", "int", "pow", "getattr", "size", "len"} and "torch.sqrt" not in ast.unparse(value)


def _is_root_of_size(node: ast.expr, divides: bool, factors: tuple[str, str], flow: Flow) -> bool:
    """``/ math.sqrt(q.size(-1))``, ``* (1.0 / math.sqrt(k.shape[-1]))``, ``* q.shape[-1] ** -0.5``."""
    if divides:
        return _is_root(node, "0.5", factors, flow)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.left, ast.Constant):
        return node.left.value == 1 and _is_root(node.right, "0.5", factors, flow)
    return _is_root(node, "-0.5", factors, flow)


def _is_root(node: ast.expr, power: str, factors: tuple[str, str], flow: Flow) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return ast.unparse(node.right) == power and _is_size(node.left, factors, flow)
    if isinstance(node, ast.Call) and power == "0.5" and len(node.args) == 1 and not node.keywords:
        name = ast.unparse(node.func)
        return name in {"math.sqrt", "sqrt", "np.sqrt", "numpy.sqrt"} and _is_size(node.args[0], factors, flow)
    return False


def _is_size(node: ast.expr, factors: tuple[str, str], flow: Flow) -> bool:
    """``q.size(-1)`` or ``k.shape[-1]`` of this very query or key, or a name for it."""
    if isinstance(node, ast.Name):
        given = [
            one.value
            for one in ast.walk(flow.function)
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one.targets[0].id == node.id
        ]
        return len(given) == 1 and not isinstance(given[0], ast.Name) and _is_size(given[0], factors, flow)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size":
        index, owner = node.args[0] if node.args else None, node.func.value
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        index, owner = node.slice, node.value.value
    else:
        return False
    return index is not None and ast.unparse(index) == "-1" and ast.unparse(owner) in factors
