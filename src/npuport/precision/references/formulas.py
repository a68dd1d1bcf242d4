"""The table of formulas, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import torch
from torch import Tensor

from npuport.findings import Sentence, say

Formula = TypeVar("Formula", bound=Callable[..., Any])

_MODULES = (
    "activations",
    "attention",
    "batch_norm",
    "casts",
    "experts",
    "losses",
    "norms",
    "optimizers",
    "products",
    "recurrent",
    "rotary",
    "softmax",
)
_formulas: dict[str, Callable[..., Any]] = {}
_round_between: set[str] = set()


class UncoveredError(Exception):
    """A formula says nothing about these arguments; ``reason`` says which."""

    def __init__(self, reason: Sentence) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True)
class Partly:
    """A result of which the documents tell only the values where ``known``, which broadcasts to it."""

    values: Tensor
    known: Tensor


@dataclass(frozen=True)
class Untold:
    """A result of which the documents tell nothing, not even its shape."""


UNTOLD = Untold()


def formula(*operators: str, rounds_between: bool = False) -> Callable[[Formula], Formula]:
    """Offer a function as the formula of operators such as "npu.npu_swiglu" (its overload "default") or
    "npu.npu_apply_adam.out".

    It takes the arguments of the operator, floating ones in float64, and gives what the operator returns and after it
    what else it writes; the tensors that it gets are its own. It raises UncoveredError for arguments that it does not
    know. ``rounds_between``: a value on the way may be rounded to the dtype of the inputs, or not.
    """

    def offer(function: Formula) -> Formula:
        names = [name if name.count(".") == 2 else f"{name}.default" for name in operators]
        _formulas.update(dict.fromkeys(names, function))
        if rounds_between:
            _round_between.update(names)
        return function

    return offer


def formula_of(operator: str) -> Callable[..., Any] | None:
    """The formula of a recorded operator such as "npu.npu_swiglu.default"; None where there is none."""
    return known_formulas().get(operator)


def rounds_between(operator: str) -> bool:
    """Whether an operator may round a value on the way to the dtype of its inputs."""
    return operator in known_formulas() and operator in _round_between


@cache
def known_formulas() -> dict[str, Callable[..., Any]]:
    """All formulas, by operator."""
    for name in _MODULES:
        import_module(f"npuport.precision.references.{name}")
    return _formulas


def gradients(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor) -> list[Tensor]:
    """The gradient of each input of a function whose result has the gradient ``grad``."""
    with torch.enable_grad():
        leaves = [one.detach().requires_grad_() for one in inputs]
        made = function(*leaves)
        return list(torch.autograd.grad(made, leaves, grad.reshape(made.shape)))


def refuse(name: str, value: Any, *allowed: Any) -> None:
    """Raise UncoveredError unless an argument has an allowed value (None always is)."""
    if value is not None and not any(
        value is one or (not isinstance(value, Tensor) and value == one) for one in allowed
    ):
        told = "…" if isinstance(value, Tensor | list | tuple) else value
        raise UncoveredError(say("no reference formula for {argument}", argument=f"{name}={told}"))


def wanted(results: Sequence[Tensor | None], mask: Sequence[bool]) -> tuple[Tensor | None, ...]:
    """Those results that a mask asks for."""
    return tuple(one if asked else None for one, asked in zip(results, mask, strict=True))
