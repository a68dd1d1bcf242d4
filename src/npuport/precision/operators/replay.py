"""Replaying a recorded call on the CPU in float64, and how far the recorded result is from that truth.

A call is replayed with its own recorded inputs, so that errors that came in with them do not count: what is measured is
the error of this one call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from npuport.precision.operators.agreement import ROUNDING, is_inexact, limit_of
from npuport.precision.operators.calls import Call, Step
from npuport.precision.operators.pieces import pieces

if TYPE_CHECKING:
    import torch

_NEAR_ZERO = 0.1  # values below this share of the root mean square count as that large


@dataclass(frozen=True)
class CallError:
    """How far a result of a call is from the truth.

    - ``relative``: the root mean square of the error as a share of that of the truth;
    - ``peak``: the largest error of a value as a share of that value, over ``relative``;
    - ``scale``: how many standard errors the result is off as a whole (1 % too large, say), and ``factor`` by what;
    - ``broken``: how many values are finite in one and not in the other;
    - ``effective``: how many values the truth's size comes from, over which noise in proportion to them is averaged.
    """

    relative: float
    peak: float
    scale: float
    factor: float
    broken: int
    effective: float


def errors_of(call: Call, step: Step) -> dict[int, CallError]:
    """The error of each rounded result of a call, by its position; empty where the call cannot be replayed."""
    return {
        position: error_between(step.tensor(ref), truth)
        for position, (ref, truth) in enumerate(zip(call.outputs, _truths(call, step), strict=False))
        if ref.dtype in ROUNDING and is_inexact(truth) and truth.numel() and tuple(truth.shape) == ref.shape
    }


def _truths(call: Call, step: Step) -> list[torch.Tensor]:
    """The results of a call in float64; none where it cannot be replayed."""
    from npuport.precision.operators.execution import NotExecutableError, execute

    try:
        return execute(call, step)
    except NotExecutableError:
        return []


def error_between(result: torch.Tensor, truth: torch.Tensor) -> CallError:
    """How far a result is from the truth, of the same shape."""
    limit = limit_of(str(result.dtype).removeprefix("torch."))
    size = difference = fourth = pulled = uncertain = 0.0
    finite = broken = 0
    for piece in pieces(truth, result, limit):
        size, difference = size + piece.of_values, difference + piece.of_difference
        finite, broken = finite + piece.finite, broken + piece.broken
        squares = piece.values.square()
        fourth += float(squares.dot(squares))
        # The error of the factor, whatever the error of each value is: noise grows with the value on most devices.
        pulls = piece.values * piece.difference
        pulled, uncertain = pulled + float(pulls.sum()), uncertain + float(pulls.dot(pulls))
    if not finite:
        return CallError(0.0, 0.0, 0.0, 1.0, broken, 1.0)
    rms, of_truth = math.sqrt(difference / finite), math.sqrt(size / finite)
    return CallError(
        relative=rms / of_truth if of_truth else rms,
        peak=_largest_share(result, truth, limit, _NEAR_ZERO * of_truth) * of_truth / rms if rms and of_truth else 0.0,
        scale=abs(pulled) / math.sqrt(uncertain) if uncertain else 0.0,
        factor=1.0 + pulled / size if size else 1.0,
        broken=broken,
        effective=size**2 / fourth if fourth else 1.0,
    )


def _largest_share(result: torch.Tensor, truth: torch.Tensor, limit: float, least: float) -> float:
    """The largest error as a share of its value; values count as ``least`` more than they are."""
    return max(
        float((piece.difference.abs_() / (piece.values.abs() + least)).max()) for piece in pieces(truth, result, limit)
    )
