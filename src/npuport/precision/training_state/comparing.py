"""The gradients of two runs of one training, layer by layer: where they part, and whether that is amplified noise.

An error in a layer's output, or noise, arrives in all layers before it on its way back, and each of them may enlarge it
a little (Ascend/pytorch issue 107: below 1 % in the last layer, half and more in the first, on healthy hardware). That
looks like a slope over depth; a fault in one layer like a jump.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from npuport.findings import Sentence, say
from npuport.precision.operators.renames import plain_path
from npuport.precision.training_state.history import Series, StateStep

_JUMP = 8.0  # times the error of the layer behind, more than the usual step from layer to layer
_AGREES = 2e-4  # errors up to here need no word
_ALONE = 0.02  # what one layer must have to stand out
_LARGE = 0.1  # of the last layer: more than noise of bfloat16 makes there
_FLAT = 1.05  # growth from layer to layer that is none
_SMALL = 1e-7  # errors below are rounding of float32


@dataclass(frozen=True)
class LayerPair:
    """A layer of both runs at one step. ``ratio`` of the gradient norms, ``error`` of the candidate's gradient as a
    share of the reference's (from SKETCH sums with random signs each: right to about a third)."""

    name: str
    ratio: float
    cosine: float
    error: float


@dataclass(frozen=True)
class StateComparison:
    """``first`` are the layers at the first common step, in the order of the backward pass; ``growth`` by how much the
    error is multiplied from layer to layer there. ``parted`` is the step from which losses differ by more than 1 %."""

    first_step: int
    first: tuple[LayerPair, ...]
    growth: float
    jump: str | None
    parted: int | None
    steps: int
    verdict: Sentence
    is_suspect: bool


def compare_states(reference: Series, candidate: Series) -> StateComparison | None:
    """Compare two series; None where they have no step or no layer in common."""
    pairs = _common(reference, candidate)
    if not pairs:
        return None
    one, other = pairs[0]
    layers = tuple(reversed(list(_layer_pairs(reference, candidate, one, other))))
    if not layers:
        return None
    growth, jump = _slope(layers)
    parted = next((a.step for a, b in pairs if _apart(a.loss, b.loss) > 0.01), None)
    verdict, is_suspect = _verdict(layers, growth, jump)
    return StateComparison(one.step, layers, growth, jump, parted, len(pairs), verdict, is_suspect)


def _common(reference: Series, candidate: Series) -> list[tuple[StateStep, StateStep]]:
    others = {step.step: step for step in candidate.steps if not step.is_skipped}
    return [(step, others[step.step]) for step in reference.steps if step.step in others and not step.is_skipped]


def _apart(one: float | None, other: float | None) -> float:
    if one is None or other is None or not (math.isfinite(one) and math.isfinite(other)):
        return 0.0 if one is None or other is None or math.isnan(one) == math.isnan(other) else math.inf
    return abs(one - other) / max(abs(one), 1e-12)


def _layer_pairs(reference: Series, candidate: Series, one: StateStep, other: StateStep) -> Iterator[LayerPair]:
    places = {plain_path(name): at for at, name in enumerate(candidate.names)}
    for layer, parameters in reference.layers().items():
        known = [
            (at, places[plain_path(reference.names[at])])
            for at in parameters
            if plain_path(reference.names[at]) in places
        ]
        norms = [
            (reference.value(one, at, "grad_norm"), candidate.value(other, twin, "grad_norm")) for at, twin in known
        ]
        if not norms or any(math.isnan(a) or math.isnan(b) for a, b in norms):
            continue
        sketches = [([*reference.sketch(one, at)], [*candidate.sketch(other, twin)]) for at, twin in known]
        yield _pair(layer, norms, sketches)


def _pair(
    layer: str, norms: Sequence[tuple[float, float]], sketches: Sequence[tuple[list[float], list[float]]]
) -> LayerPair:
    sizes = math.hypot(*(a for a, _ in norms)), math.hypot(*(b for _, b in norms))
    ratio = sizes[1] / sizes[0] if sizes[0] > 0 else math.nan
    mine = [value for a, _ in sketches for value in a]
    theirs = [value for _, b in sketches for value in b]
    lengths = math.hypot(*mine), math.hypot(*theirs)
    product = math.fsum(a * b for a, b in zip(mine, theirs, strict=True))
    cosine = product / (lengths[0] * lengths[1]) if lengths[0] > 0 and lengths[1] > 0 else math.nan
    difference = math.hypot(*(b - a for a, b in zip(mine, theirs, strict=True)))
    error = difference / lengths[0] if lengths[0] > 0 else math.nan
    return LayerPair(layer, ratio, max(-1.0, min(1.0, cosine)), max(error, abs(ratio - 1)))


def _slope(layers: Sequence[LayerPair]) -> tuple[float, str | None]:
    """(factor from layer to layer, the layer at which the error jumps); layers as the backward pass reaches them."""
    errors = [max(one.error, _SMALL) for one in layers]
    if len(errors) < 3:
        return 1.0, None
    steps = [math.log(after / before) for before, after in pairwise(errors)]
    growth = math.exp(math.log(errors[-1] / errors[0]) / len(steps))
    for at in range(1, len(errors)):
        before, behind = errors[:at], errors[at:]
        # Errors stay once they are there: a single layer above the others is judged by the layers around it too.
        if median(behind) > _JUMP * max(before) and errors[at] > _JUMP * max(before):
            return growth, layers[at].name
    return growth, None


def _verdict(layers: Sequence[LayerPair], growth: float, jump: str | None) -> tuple[Sentence, bool]:
    errors = [one.error for one in layers]
    largest = max(layers, key=lambda one: one.error)
    if not all(math.isfinite(one) for one in errors):
        bad = next(one.name for one in layers if not math.isfinite(one.error))
        return say("the gradient of {layer} is not finite in one run", layer=bad), True
    if max(errors) <= _AGREES:
        return say(
            "the gradients of the first step agree: the largest difference is {error}", error=f"{max(errors):.1e}"
        ), False
    if jump is not None:
        text = say(
            "in the first step the difference jumps at {layer}, and all layers before it have it: look at what {layer} "
            "computes in its backward pass, and at what is between it and the layer behind",
            layer=jump,
        )
        return text, True
    outlier = _outlier(layers)
    if outlier is not None:
        text = say(
            "in the first step {layer} alone differs, by {error}: look at its own gradient",
            layer=outlier.name,
            error=f"{outlier.error:.1%}",
        )
        return text, True
    if errors[0] > _LARGE:
        text = say(
            "in the first step the gradients differ from the last layer on, by {error}: the forward pass, the loss or "
            "the batch differs already",
            error=f"{errors[0]:.1%}",
        )
        return text, True
    if growth < _FLAT:
        text = say(
            "in the first step all layers differ by about as much, {error} at most ({layer}), as noise does",
            error=f"{largest.error:.1%}",
            layer=largest.name,
        )
        return text, False
    text = say(
        "in the first step the difference grows smoothly on its way back, by {growth} for each layer, up to {error} in "
        "{layer}: that is how noise is amplified through depth, no sign of a wrong layer",
        growth=f"{growth:.3g}",
        error=f"{largest.error:.1%}",
        layer=largest.name,
    )
    return text, False


def _outlier(layers: Sequence[LayerPair]) -> LayerPair | None:
    """A layer whose error is far above all others'."""
    if len(layers) < 3:
        return None
    ordered = sorted(layers, key=lambda one: one.error)
    return (
        ordered[-1]
        if ordered[-1].error > _ALONE and ordered[-1].error > _JUMP * max(ordered[-2].error, _SMALL)
        else None
    )
