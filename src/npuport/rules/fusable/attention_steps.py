"""What the steps of a hand-written attention do, in the source's own expressions: what one fused call needs to know."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from npuport.rules.base import Context
from npuport.rules.fusable.dataflow import Flow
from npuport.rules.fusable.fragments import Unfit
from npuport.rules.fusable.match import Match
from npuport.rules.fusable.values import Value


@dataclass(frozen=True)
class Step:
    """One operation on the scores or the weights.

    ``operands`` are what else goes in, in order, and ``named`` its keyword arguments. ``scores_at`` is the place of the
    scores among the operation's own operands, and ``scores`` how they are called there. ``condition`` is the test under
    which it is done.
    """

    value: Value
    node: ast.expr
    scores: ast.expr | None
    operands: tuple[ast.expr, ...]
    named: dict[str, ast.expr]
    scores_at: int
    condition: ast.expr | None = None

    @property
    def op(self) -> str:
        return self.value.op


@dataclass(frozen=True)
class Steps:
    """An attention taken apart: the product, what is done to its scores, the softmax, to its weights, the last one."""

    product: Step
    on_scores: tuple[Step, ...]
    softmax: Step
    on_weights: tuple[Step, ...]
    result: Step

    def __iter__(self) -> Iterator[Step]:
        return iter((self.product, *self.on_scores, self.softmax, *self.on_weights, self.result))


def steps_of(match: Match, flow: Flow, context: Context) -> Steps:
    """Take a match apart.

    Raises:
        Unfit: for branches that compute different scores.
    """
    way = _without_choices(match.steps, match.anchor)
    places = _Places(flow.function)
    made = [
        _step(value, way[index - 1][0] if index else None, condition, places, flow, context)
        for index, (value, condition) in enumerate(way)
    ]
    softmax = next(index for index, step in enumerate(made) if step.value is match.anchor)
    return Steps(made[0], tuple(made[1:softmax]), made[softmax], tuple(made[softmax + 1 : -1]), made[-1])


def _without_choices(values: tuple[Value, ...], softmax: Value) -> list[tuple[Value, bool]]:
    """The values that are computed in turn, and whether each is done on one branch only.

    Raises:
        Unfit: when a choice is not between a value and one before it.
    """
    way: list[tuple[Value, bool]] = []
    for value in values:
        if value.op != "choice":
            way.append((value, False))
            continue
        earlier = [index for index, (one, _) in enumerate(way) if any(one is other for other in value.inputs)]
        if len(value.inputs) != 2 or len(earlier) != 2 or value.node is not None:
            after = any(one is softmax for one, _ in way)
            raise Unfit(f"branches compute different {'weights' if after else 'scores'}")
        start = min(earlier) + 1
        if any(conditional for _, conditional in way[start:]):
            raise Unfit("branches within branches")
        way[start:] = [(one, True) for one, _ in way[start:]]
    return way


class _Places:
    """Where the expressions of a function stand."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.around: dict[int, ast.AST] = {}
        self.augmented: dict[tuple[int, int], ast.AugAssign] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.AugAssign):
                self.augmented[node.lineno, node.col_offset] = node
            for child in ast.iter_child_nodes(node):
                self.around[id(child)] = node

    def condition(self, node: ast.expr) -> ast.expr:
        """The test of the innermost ``if`` without an ``else`` that a node stands under.

        Raises:
            Unfit: when there is none.
        """
        at: ast.AST | None = node if id(node) in self.around else self.augmented.get((node.lineno, node.col_offset))
        while at is not None:
            outer = self.around.get(id(at))
            if isinstance(outer, ast.If) and at is not outer.test:
                if outer.orelse or at in outer.orelse:
                    break
                return outer.test
            at = outer
        raise Unfit("branches compute different scores")


def _step(value: Value, before: Value | None, conditional: bool, places: _Places, flow: Flow, context: Context) -> Step:
    node = value.node
    if node is None:
        raise Unfit("a step is not an expression of its own")
    operands, named = _operands(node, flow, context)
    if value.op == "einsum":
        tensors = operands[1:]
        operands = tensors[0].elts if tensors and isinstance(tensors[0], ast.List | ast.Tuple) else tensors
    at = 0
    scores: ast.expr | None = None
    if before is not None:
        at = next((index for index, one in enumerate(value.inputs) if one is before), 0)
        scores = operands[at] if at < len(operands) else None
        operands = [one for index, one in enumerate(operands) if index != at]
    condition = places.condition(node) if conditional else None
    return Step(value, node, scores, tuple(operands), named, at, condition)


def _operands(node: ast.expr, flow: Flow, context: Context) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    """What goes into an operation, the tensor whose method it is first."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right], {}
    if isinstance(node, ast.Attribute):
        return [node.value], {}
    if not isinstance(node, ast.Call):
        return [node], {}
    function = node.func
    owner: list[ast.expr] = []
    if isinstance(function, ast.Attribute) and flow.name_of(function, context) is None:
        is_the_class_s = isinstance(function.value, ast.Name) and function.value.id in {"self", "cls"}
        owner = [] if is_the_class_s else [function.value]
    named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    return [*owner, *node.args], named


def flat(node: ast.expr, context: Context) -> str:
    """The source of an expression on one line; of one on several, which may hold comments, as Python writes it."""
    text = context.module.segment(node)
    return ast.unparse(node) if "\n" in text else text


def part(text: str) -> str:
    """The source of an expression that is to be an operand of ``and`` or ``if``, which bind less than all others."""
    loose = isinstance(ast.parse(text, mode="eval").body, ast.IfExp | ast.BoolOp | ast.Lambda | ast.NamedExpr)
    return f"({text})" if loose else text
