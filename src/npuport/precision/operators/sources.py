"""Tensors that came from outside of the recorded calls, such as parameters, buffers, batches and masks: are they the
same in both runs?

In the first step they have to be. In later ones parameters and states of optimizers differ by themselves: an optimizer
that divides by the size of gradients makes full steps from values that are nothing but rounding (the bias of keys in
attention: a softmax does not see it), and in the other direction where rounding turns the sign of a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import median
from typing import TYPE_CHECKING

from npuport.findings import say
from npuport.precision.operators.agreement import ROUNDING, Distance, apart
from npuport.precision.operators.alignment import Alignment
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.suspicion import Suspect
from npuport.precision.operators.versions import Versions, path_of

if TYPE_CHECKING:
    from torch import Tensor

# How far apart parameters and batches may be in the first step, and later.
_SOURCE = (1e-4, 2e-2)
# Of gradients: distances of most of them, and of those that are nothing but rounding; the size of the latter.
_AGREEING, _UNLIKE, _SMALL = 0.1, 0.3, 0.03
_RARE = 1e-4  # how improbable it has to be that so many signs are turned


def other_sources(
    alignment: Alignment,
    reference: Step,
    candidate: Step,
    distance_of: Distance,
    at_least: Callable[[Call], float] = lambda _: 0.0,
) -> Iterator[Suspect]:
    """Tensors that came from outside of the recorded calls and are not the same; ``at_least`` says how far apart they
    have to be where they are used."""
    made = _made(reference), _made(candidate)
    seen: set[int] = set()
    differences: list[tuple[float, float, Call, TensorRef, TensorRef]] = []
    for call, one, other in _same_tensors(alignment, reference, candidate):
        is_source = one.storage not in made[0] and other.storage not in made[1]
        if not is_source or other.storage in seen or one.shape != other.shape:
            continue
        seen.add(other.storage)
        rounding = 2 * max(ROUNDING.get(ref.dtype, 0.0) for ref in (one, other)) if one.dtype != other.dtype else 0.0
        differences.append((distance_of(one, other), rounding, call, one, other))
    differences.sort(key=lambda one: one[2].index)
    floating = [distance for distance, _, _, _, ref in differences if ref.dtype in ROUNDING and distance > 0]
    usual = median(floating) if len(floating) > 4 else 0.0
    gradients = Gradients(reference, candidate, distance_of) if candidate.step and differences else None
    for number, (whole, rounding, call, one, ref) in enumerate(differences):
        distance, limit = whole, max(8 * usual, rounding, at_least(call))
        if ref.dtype in ROUNDING:
            limit = max(limit, _SOURCE[min(candidate.step, 1)])
        if distance > limit and gradients is not None:
            path = path_of(candidate.names.get(ref.storage, ""))
            distance, limit = gradients.apart(path, one, ref, whole), max(limit, gradients.by_turned_signs(path, ref))
        if distance > limit:
            named = {"apart": f"{distance:.2g}", "dtype": ref.dtype, "shape": list(ref.shape)}
            name = candidate.names.get(ref.storage)
            text = (
                say("an input that no recorded operator made differs by {apart} ({dtype} {shape})", **named)
                if name is None
                else say(
                    "{name}, which no recorded operator made, differs by {apart} ({dtype} {shape})", name=name, **named
                )
            )
            yield Suspect(call, "input", 800.0 - number * 1e-3, text)


class Gradients:
    """What the gradients of a later step tell of how far its parameters and states may be apart; nothing where they do
    not agree themselves."""

    def __init__(self, reference: Step, candidate: Step, distance_of: Distance) -> None:
        self._steps = reference, candidate
        self._pairs = Versions(reference, candidate).gradients()
        self._distances = {path: distance_of(*pair) for path, pair in self._pairs.items()}
        self._usual = median(self._distances.values()) if self._distances else math.inf
        if self._usual > _AGREEING:
            self._pairs = {}
        sizes = {path: _size_of(candidate, ref) for path, (_, ref) in self._pairs.items()}
        self._small = _SMALL * median(sizes.values()) if sizes else 0.0
        self._of_rounding = {
            path for path, size in sizes.items() if self._distances[path] > _UNLIKE and size < self._small
        }

    def apart(self, path: str | None, one: TensorRef, other: TensorRef, whole: float) -> float:
        """How far a tensor about a parameter is apart without the values whose gradient is nothing but rounding;
        ``whole``: with them."""
        if path not in self._pairs or path is None:
            return whole
        if path in self._of_rounding:
            return 0.0
        gradients = self._pairs[path]
        if not all(step.has_tensors for step in self._steps) or gradients[0].shape != one.shape:
            return whole
        kept = _without_rounding(*self._tensors(*gradients), self._small)
        a, b = self._tensors(one, other)
        return apart(a[kept], b[kept])

    def by_turned_signs(self, path: str | None, ref: TensorRef) -> float:
        """How far apart a tensor may be that was made by full steps alone (a bias that began with zeros): some of them
        went in the other direction."""
        if path not in self._pairs or path is None:
            return 0.0
        own, values = self._distances[path], math.prod(ref.shape)
        # The share of normally distributed values that change their sign with noise of such a size.
        turned = (own if own <= _AGREEING else self._usual) / math.pi
        return 2 * math.sqrt(_most(values * turned) / max(values, 1))

    def _tensors(self, one: TensorRef, other: TensorRef) -> tuple[Tensor, Tensor]:
        tensors = self._steps[0].tensor(one), self._steps[1].tensor(other)
        a, b = (tensor if tensor.is_complex() else tensor.double() for tensor in tensors)
        return a, b


def _without_rounding(one: Tensor, other: Tensor, small: float) -> Tensor:
    """Where two gradients are more than rounding: larger than the small values that are unlike in both."""
    import torch

    size = torch.maximum(one.abs(), other.abs())
    unlike = size[((one - other).abs() > _UNLIKE * size) & (size < small)]
    return size > 2 * unlike.max() if unlike.numel() else torch.ones_like(size, dtype=torch.bool)


def _most(expected: float) -> float:
    """So many events are seldom exceeded where ``expected`` are (Poisson's distribution)."""
    if expected > 50:
        return expected + 4 * math.sqrt(expected)
    term = math.exp(-expected)
    number, rest = 0, 1 - term
    while rest > _RARE:
        number += 1
        term *= expected / number
        rest -= term
    return number


def _size_of(step: Step, ref: TensorRef) -> float:
    """Root mean square of a tensor; 0 where nothing is known of it."""
    known = step.statistics_of(ref)
    return known.norm / math.sqrt(max(math.prod(ref.shape), 1)) if known is not None else 0.0


def _same_tensors(
    alignment: Alignment, reference: Step, candidate: Step
) -> Iterator[tuple[Call, TensorRef, TensorRef]]:
    """The inputs of aligned calls, and the parameters and buffers that only other calls read; each with the call of the
    candidate that reads it."""
    for of_reference, of_candidate in alignment.pairs:
        for one, other in zip(of_reference.inputs, of_candidate.inputs, strict=False):
            yield of_candidate, one, other
    readers = {ref.storage: call for call in reversed(candidate.calls) for ref in call.inputs}
    for one, other in Versions(reference, candidate).first():
        if candidate.names[other.storage].startswith(("parameter ", "buffer ")):
            yield readers[other.storage], one, other


def _made(step: Step) -> set[int]:
    """The storages that a recorded call made or wrote."""
    return {ref.storage for call in step.calls for ref in call.outputs}
