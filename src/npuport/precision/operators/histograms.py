"""How the values of a result are spread in two runs, and those of its error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from npuport.precision.operators.agreement import ROUNDING
from npuport.precision.operators.alignment import Alignment
from npuport.precision.operators.calls import Step, TensorRef
from npuport.precision.operators.suspicion import Suspect

if TYPE_CHECKING:
    from torch import Tensor

BINS = 40


@dataclass(frozen=True)
class Histogram:
    """Counts of values in bins of one width from ``low`` to ``high``; ``outside``: values that are not finite."""

    low: float
    high: float
    counts: tuple[int, ...]
    outside: int


@dataclass(frozen=True)
class Histograms:
    """Of the result of a call in both runs, on the same bins, and of the difference."""

    dtype: str
    shape: tuple[int, ...]
    reference: Histogram
    candidate: Histogram
    difference: Histogram


def histograms_of(suspect: Suspect, alignment: Alignment, reference: Step, candidate: Step) -> Histograms | None:
    """The histograms of a suspect's first floating result; None if the other run has no such result."""
    import torch

    refs = _results(suspect, alignment)
    found = next(((a, b) for a, b in refs if a.shape == b.shape and _has_a_picture(a) and _has_a_picture(b)), None)
    if found is None or not (reference.has_tensors and candidate.has_tensors):
        return None
    a, b = reference.tensor(found[0]).double(), candidate.tensor(found[1]).double()
    finite = [one[torch.isfinite(one)] for one in (a, b)]
    low = min((float(one.min()) for one in finite if one.numel()), default=0.0)
    high = max((float(one.max()) for one in finite if one.numel()), default=1.0)
    difference = b - a
    of_difference = difference[torch.isfinite(difference)]
    widest = float(of_difference.abs().max()) if of_difference.numel() else 0.0
    return Histograms(
        found[1].dtype,
        found[1].shape,
        _histogram(a, low, high),
        _histogram(b, low, high),
        _histogram(difference, -widest, widest),
    )


def _results(suspect: Suspect, alignment: Alignment) -> Iterator[tuple[TensorRef, TensorRef]]:
    """What both runs have as results of a suspect; of a stretch of other operators what aligned calls use of it."""
    for one, other in alignment.pairs:
        if other is suspect.call:
            yield from zip(one.outputs, other.outputs, strict=False)
            return
    stretch = next((one for one in alignment.differences if suspect.call in (*one.candidate, *one.reference)), None)
    if stretch is None:
        return
    of_reference, of_candidate = (
        {ref.storage for call in calls for ref in call.outputs} for calls in (stretch.reference, stretch.candidate)
    )
    for one, other in alignment.pairs:
        for a, b in zip(one.inputs, other.inputs, strict=False):
            if a.storage in of_reference and b.storage in of_candidate:
                yield a, b


def _has_a_picture(ref: TensorRef) -> bool:
    return ref.dtype in ROUNDING and not ref.dtype.startswith("complex") and 0 not in ref.shape


def _histogram(values: Tensor, low: float, high: float) -> Histogram:
    import torch

    if not math.isfinite(high - low) or high <= low:
        low, high = low - 0.5, low + 0.5
    finite = values[torch.isfinite(values)]
    counts = torch.histc(finite, BINS, low, high)
    return Histogram(low, high, tuple(int(one) for one in counts), values.numel() - finite.numel())
