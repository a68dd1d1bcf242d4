"""The normal form of a computation: values, made of other values by named operations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(eq=False, repr=False, slots=True)
class Value:
    """What an expression computes: ``op`` of ``inputs``.

    ``detail`` is what else the operation needs: a constant, a name, the index of a part. ``node`` is the expression
    that computes it, and ``uses`` are the values made of it. Two values are equal only if they are one computation.
    """

    op: str
    inputs: tuple[Value, ...] = ()
    node: ast.expr | None = None
    detail: object = None
    named: dict[str, Value] = field(default_factory=dict)  # keyword arguments; the test of a choice; what a half is of
    uses: list[Value] = field(default_factory=list)

    @property
    def first(self) -> Value:
        """The tensor that the operation is applied to.

        Raises:
            IndexError: when there is none.
        """
        return self.inputs[0]

    @property
    def constant(self) -> object:
        """The value of a literal; None for anything else."""
        return self.detail if self.op == "constant" else None


# Operations that leave the numbers as they are, but for their type or their place.
SAME_NUMBERS = frozenset({"cast", "layout", "copy"})


def bare(value: Value) -> Value:
    """``value`` without casts, changes of layout and copies around it."""
    while value.op in SAME_NUMBERS and value.inputs:
        value = value.first
    return value


def alternatives(value: Value) -> Iterator[Value]:
    """What a value is on each way through the function's branches, each once."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.op == "choice":
            waiting[:0] = one.inputs
        else:
            yield one


def followed(value: Value, through: Callable[[Value], tuple[Value, ...]]) -> Iterator[Value]:
    """``value`` and what is reached from it by ``through``, each once, near ones first."""
    seen = {id(value)}
    waiting = [value]
    while waiting:
        one = waiting.pop(0)
        yield one
        for other in through(one):
            if id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def same(left: Value, right: Value) -> bool:
    """Whether two values are the same computation, casts and layout aside."""
    left, right = bare(left), bare(right)
    return left is right or (
        left.op == right.op
        and left.op in {"attribute", "constant", "name", "half", "pair", "part"}
        and left.detail == right.detail
        and len(left.inputs) == len(right.inputs)
        and all(same(a, b) for a, b in zip(left.inputs, right.inputs, strict=True))
    )


def is_low(value: Value) -> bool:
    """Whether a value stands for minus infinity: a large negative number, float("-inf"), finfo(…).min."""
    if isinstance(value.constant, int | float):
        return value.constant <= -100
    if value.op == "attribute":
        return value.detail in {"min", "masked_bias"}
    if value.op == "neg":
        return any(str(one.detail).endswith(("inf", "max")) for one in value.inputs)
    if value.op in SAME_NUMBERS and value.inputs:
        return is_low(value.first)
    made = value.op == "call" and str(value.detail).endswith((".tensor", ".full"))
    return value.op == "call" and any(one.constant == "-inf" or (made and is_low(one)) for one in value.inputs)
