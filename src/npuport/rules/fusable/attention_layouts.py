"""Query, key and value of a hand-written attention as a fused call takes them: [..., sequence, size of a head]."""

from __future__ import annotations

import ast
import re

from npuport.rules.base import Context
from npuport.rules.fusable.attention_steps import Step, Steps, flat
from npuport.rules.fusable.fragments import Unfit

_LAST_TWO = {(-2, -1), (-1, -2), (2, 3), (3, 2)}
_LAST_TWO_OF_THREE = {(1, 2), (2, 1)}
_PERMUTATIONS = {(0, 1, 3, 2), (0, 2, 1)}
_EINSUM = re.compile(r"([a-z]+),([a-z]+)->([a-z]+)")


def factors(product: Step, context: Context) -> tuple[str, str]:
    """Query and key of q kᵀ.

    Raises:
        Unfit: for an einsum of another kind.
    """
    if product.op == "einsum":
        query, key, _ = _einsum(product, context)
        return query, key
    operands = _factors(product)
    return flat(without_float(operands[0]), context), _transposed(product, context)


def output(steps: Steps, context: Context) -> tuple[str, str]:
    """The value, and what is appended to the call so that its result is that of the last product.

    Raises:
        Unfit: for weights that are not the first factor, or an einsum of another kind.
    """
    result = steps.result
    if (steps.product.op == "einsum") != (result.op == "einsum"):
        raise Unfit("one product is an einsum and the other is not")
    if result.op != "einsum":
        if result.scores_at != 0 or not result.operands or result.op == "baddbmm":
            raise Unfit("the weights are not the first factor of the product with the value")
        return flat(result.operands[0], context), ""
    _, _, scores = _einsum(steps.product, context)
    left, right, out = _letters(result)
    if result.scores_at != 0 or len(left) != len(scores):
        raise Unfit("the weights are not the first factor of the product with the value")
    lead, key, size = left[:-2], left[-1], next(iter(set(right) - set(left)), "")
    value = _arranged(result.operands[-1], right, lead + key + size, context)
    wanted = lead + left[-2] + size
    if out == wanted:
        return value, ""
    if len(out) == 4 and out == wanted[0] + wanted[2] + wanted[1] + wanted[3]:
        return value, ".transpose(1, 2)"
    raise Unfit("an einsum of another kind")


def _factors(product: Step) -> tuple[ast.expr, ast.expr]:
    operands = product.operands[-2:]
    if len(operands) != 2:
        raise Unfit("the factors of the product are not seen")
    return operands[0], operands[1]


def without_float(node: ast.expr) -> ast.expr:
    """A factor before it is made float32: the fused kernel adds up in float32 by itself."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "float":
        node = node.func.value
    return node


def _transposed(product: Step, context: Context) -> str:
    """The key of a product; where what stands there is not seen to be one transposed, it is transposed back."""
    node, turned = key_of(product)
    return flat(node, context) if turned else f"{as_owner(flat(node, context))}.transpose(-2, -1)"


def key_of(product: Step) -> tuple[ast.expr, bool]:
    """The key of a product, and whether the source has it with its last two dimensions exchanged."""
    node = without_float(_factors(product)[1])
    inner = _turned(node, is_folded(product))
    return (node, False) if inner is None else (without_float(inner), True)


def _turned(node: ast.expr, of_three: bool) -> ast.expr | None:
    if isinstance(node, ast.Attribute) and node.attr in {"mT", "mH"}:
        return node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    function, numbers = node.func, [_integer(one) for one in node.args]
    inner = function.value
    if isinstance(inner, ast.Name) and inner.id == "torch" and node.args:  # torch.transpose(k, -2, -1)
        inner, numbers = node.args[0], numbers[1:]
    if function.attr in {"transpose", "swapaxes", "swapdims"}:
        known = _LAST_TWO | (_LAST_TWO_OF_THREE if of_three else set())
        return inner if tuple(numbers) in known else None
    return inner if function.attr == "permute" and tuple(numbers) in _PERMUTATIONS else None


def _integer(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if isinstance(node.operand.value, int) else None
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else None


def _einsum(product: Step, context: Context) -> tuple[str, str, str]:
    """Query, key and the letters of the scores."""
    left, right, scores = _letters(product)
    size = set(left) & set(right) - set(scores)
    if len(size) != 1 or len(scores) < 3:
        raise Unfit("an einsum of another kind")
    lead, query, key = scores[:-2], scores[-2], scores[-1]
    operands = product.operands
    if query not in left:
        left, right, operands = right, left, operands[::-1]
    return (
        _arranged(operands[0], left, lead + query + "".join(size), context),
        _arranged(operands[1], right, lead + key + "".join(size), context),
        scores,
    )


def _letters(step: Step) -> tuple[str, str, str]:
    asked = step.value.detail
    found = _EINSUM.fullmatch(_one_letter_each(asked) if isinstance(asked, str) else "")
    if found is None:
        raise Unfit("an einsum of another kind")
    return found[1], found[2], found[3]


def _one_letter_each(equation: str) -> str:
    """An equation without blanks; one with names of several letters, as einops has them, is left as it is."""
    return equation.replace(" ", "") if not re.search(r"[a-z]{2}\s+[a-z]", equation) else equation


def _arranged(node: ast.expr, letters: str, wanted: str, context: Context) -> str:
    if letters == wanted:
        return flat(node, context)
    if len(letters) == 4 and letters == wanted[0] + wanted[2] + wanted[1] + wanted[3]:
        return f"{as_owner(flat(node, context))}.transpose(1, 2)"
    raise Unfit("an einsum of another kind")


def as_owner(text: str) -> str:
    """The source of an expression, such that a method can be called on it."""
    atom = isinstance(ast.parse(text, mode="eval").body, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return text if atom else f"({text})"


def is_folded(product: Step) -> bool:
    """Whether a product is of three dimensions: that of bmm and baddbmm, and an einsum with one leading letter."""
    if product.op == "einsum":
        return str(product.value.detail).replace(" ", "").find(",") == 3
    return product.op == "baddbmm" or (isinstance(product.node, ast.Call) and _short(product.node) == "bmm")


def _short(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
