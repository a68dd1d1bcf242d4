"""How far the two sides of a claim are from the truth, and whether that is the same."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Side:
    """What one side of a claim gave, by what it is."""

    outputs: dict[str, Tensor]


@dataclass(frozen=True)
class Compared:
    """The largest relative errors of both, and why they are not equal; "" when they are."""

    original: float = 0.0
    replacement: float = 0.0
    reason: str = ""


def compare(truth: Side, original: Side, replacement: Side, eps: float, deviation: float) -> Compared:
    """The rule of ``npuport.proof``, over every result and gradient."""
    worst = Compared()
    if len(original.outputs) != len(replacement.outputs):
        return Compared(reason=f"{len(original.outputs)} tensors come out, but {len(replacement.outputs)} do then")
    for name, right in truth.outputs.items():
        old, new = original.outputs[name], replacement.outputs[name]
        found = _compare(name, right, old, new, eps, deviation)
        worst = Compared(
            max(worst.original, found.original), max(worst.replacement, found.replacement), worst.reason or found.reason
        )
    return worst


def _compare(name: str, truth: Tensor, old: Tensor, new: Tensor, eps: float, deviation: float) -> Compared:
    if old.shape != new.shape:
        return Compared(reason=f"{name} has the shape {list(new.shape)} and not {list(old.shape)}")
    if old.dtype != new.dtype:
        return Compared(reason=f"{name} is {_name(new.dtype)} and not {_name(old.dtype)}")
    if not truth.is_floating_point():
        return Compared(reason="" if torch.equal(old, new) else f"{name} differs")
    right = truth.to(old.dtype).double()  # numbers that the dtype cannot hold are infinite in the truth, too
    new_exactly = new.double()
    infinite = ~right.isfinite() | ~new_exactly.isfinite()
    wrong = infinite & ~_alike(new_exactly, right) & ~_alike(new_exactly, old.double())
    if wrong.any():
        return Compared(reason=f"{name} is {_first(new, wrong)} where it was {_first(old, wrong)}")
    unit = (truth[truth.isfinite()].abs().max().item() if truth.isfinite().any() else 0.0) or 1.0
    error_old, error_new = (_error(one, truth) / unit for one in (old, new))
    allowed = 2 * error_old + 4 * eps + deviation
    if error_new <= allowed:
        return Compared(error_old, error_new)
    reason = f"{name} differs by {error_new:.1e} of its largest value, where {allowed:.1e} would be rounding"
    return Compared(error_old, error_new, reason)


def _error(value: Tensor, truth: Tensor) -> float:
    """The largest absolute error among the finite numbers."""
    finite = value.isfinite() & truth.isfinite()
    return (value.double() - truth)[finite].abs().max().item() if finite.any() else 0.0


def _alike(one: Tensor, other: Tensor) -> Tensor:
    return (one == other) | (one.isnan() & other.isnan())


def _first(value: Tensor, where: Tensor) -> str:
    return f"{value[where][0].item():.4g}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
