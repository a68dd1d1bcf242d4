"""How far two runs are apart: result by result of the aligned calls, and behind a stretch that they do differently."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from statistics import median
from typing import TYPE_CHECKING

from npuport.precision.operators.alignment import Alignment, Difference
from npuport.precision.operators.calls import Call, TensorRef
from npuport.precision.operators.drawing import drops, holds_anything, is_random
from npuport.precision.operators.pieces import pieces, square_of

if TYPE_CHECKING:
    import torch

ROUNDING = {
    "float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8,
    "complex128": 2.0**-53, "complex64": 2.0**-24, "complex32": 2.0**-11,
}  # fmt: skip
_LARGEST = {"float64": 1.79e308, "float32": 3.4028e38, "float16": 65504.0, "bfloat16": 3.3895e38}
_TIMES = 8  # further apart than usual by this factor is not by chance
_ROUNDINGS = 16
_FEW = 5  # results that tell what is usual
_SAME_NUMBERS = 1e-6  # closer are the statistics of the same numbers, computed in float32
_OTHER_NUMBERS = 0.1  # as far apart is what a dropout gives with other numbers, whatever it was given

Distance = Callable[[TensorRef, TensorRef], float]
"""How far a tensor of the reference and one of the candidate are apart, as a share of their size."""


class Agreement:
    """The distances of two aligned steps. Results before a call tell what is usual there: errors add up on the way."""

    def __init__(self, alignment: Alignment, distance: Distance) -> None:
        self._apart = distance
        self._pairs = alignment.pairs
        self._indexes: list[int] = []
        self._aparts: list[float] = []
        self.random: Call | None = None
        """The first call that gives other random numbers in both runs."""
        for one, other in alignment.pairs:
            distances = [self._apart(a, b) for a, b in zip(one.outputs, other.outputs, strict=False)]
            for ref, far in zip(other.outputs, distances, strict=False):
                if ref.dtype in ROUNDING and far > 0 and not holds_anything(other):
                    self._indexes.append(other.index)
                    self._aparts.append(far)
            if self.random is None and is_random(other) and max(distances, default=0.0) > self._given(one, other):
                self.random = other
        self._furthest = list(accumulate(self._aparts, max))
        for difference in alignment.differences:
            draws = [call for call in difference.candidate or difference.reference if is_random(call)]
            if draws and (self.random is None or draws[0].index < self.random.index):
                self.random = draws[0]

    def _given(self, one: Call, other: Call) -> float:
        """How far apart the results of a random call may be that draws the same numbers in both runs."""
        if not drops(other):
            return _SAME_NUMBERS
        inputs = (self._apart(a, b) for a, b in zip(one.inputs, other.inputs, strict=False))
        return min(_TIMES * max(inputs, default=0.0) + _SAME_NUMBERS, _OTHER_NUMBERS)

    def is_apart_behind(self, difference: Difference) -> bool:
        """Whether what a stretch of other operators made differs where aligned calls use it."""
        made = [
            {ref.storage for call in calls for ref in call.outputs}
            for calls in (difference.reference, difference.candidate)
        ]
        first = (*difference.candidate, *difference.reference)[0]
        usual = self.usual(first)
        return any(
            self._apart(a, b) > usual
            for one, other in self._pairs
            for a, b in zip(one.inputs, other.inputs, strict=False)
            if a.storage in made[0] or b.storage in made[1]
        )

    def beyond(self, call: Call) -> float:
        """How far apart something has to be at a call to be further apart than all results before it."""
        before = bisect_left(self._indexes, call.index)
        return _TIMES * self._furthest[before - 1] if before else 0.0

    def usual(self, call: Call) -> float:
        """How far apart results may be at the place of a call."""
        before = self._aparts[: bisect_left(self._indexes, call.index)]
        dtype = next((ref.dtype for ref in call.outputs if ref.dtype in ROUNDING), "float32")
        rounding = _ROUNDINGS * ROUNDING[dtype]
        return max(_TIMES * median(before), rounding) if len(before) >= _FEW else rounding


def limit_of(dtype: str) -> float:
    """From here on a value counts as infinite: masks are filled with the largest value there is, which rounding, or one
    more addition, may turn into an infinity on one device and not on another."""
    return _LARGEST.get(dtype, math.inf) / 4


def norm_of(tensor: torch.Tensor) -> float:
    """The norm of the values that count as finite."""
    return math.sqrt(square_of(tensor, limit_of(_dtype_of(tensor))))


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """Relative difference (root mean square) of two tensors of one shape; for whole numbers the share that differs, and
    1 where what is finite in one is not so in the other."""
    import torch

    if not one.numel():
        return 0.0
    if not (is_inexact(one) and is_inexact(other)):
        return int(torch.count_nonzero(one != other)) / int(one.numel())
    size, difference, finite = 0.0, 0.0, 0
    for piece in pieces(one, other, limit_of(_dtype_of(one))):
        if piece.broken:
            return 1.0
        size, difference, finite = size + piece.of_values, difference + piece.of_difference, finite + piece.finite
    return math.sqrt(difference / (size or finite or 1))


def is_inexact(tensor: torch.Tensor) -> bool:
    """Whether the values of a tensor are rounded ones."""
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _dtype_of(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
