"""What is wrong with a training, from its own numbers alone. Quiet where training is merely noisy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from npuport.findings import Sentence, say
from npuport.precision.training_state.history import Series
from npuport.precision.training_state.layers import Layer, layers_of, steps_of

WINDOW = 20  # steps that a step is compared with, and for which a state must last
_SPIKE = 10.0  # times the largest of the window (gradients), of the median (losses: and a tenth of the first loss)
_LOSS_SPIKE = 2.0
_DEVIATIONS = 8.0  # of the losses in the window
_MAD = 1.4826  # a normal distribution's deviation in units of its median absolute deviation
_GROWN = 100.0  # times what a layer's gradient was in the beginning
_VANISHED = 1e-6  # of the largest among the layers of the same step
_LARGE_UPDATE = 0.3  # of a layer's weights in one step, for a whole window
_FIXED = 1e-8  # of the weights: what a step changes in a layer that stands still
_OUTGROWN = 10.0  # times its first weights
_DIVERGED = 1.5  # times the first loss
_SKIPS = 8  # steps in a row that the scaler left out


@dataclass(frozen=True)
class Alert:
    """One trouble: since which step, in which layer ("" where it concerns all)."""

    name: str
    step: int
    layer: str
    text: Sentence


def alerts_of(series: Series) -> list[Alert]:
    """The troubles of the steps of one optimizer: the earliest first, at the same step the most telling."""
    layers, steps = layers_of(series), steps_of(series)
    found = [*_scaling(series), *_losses(series)]
    for layer in layers:
        found += _not_finite(layer, steps)
        found += _still(layer, steps)
    found += _spikes(layers, steps)
    found += _vanishing(layers, steps)
    found += _growing(layers, steps)
    found += _updates(layers, steps)
    # Of layers that show the same at once the one that the backward pass reaches first, which is the last one.
    place = {layer.name: -number for number, layer in enumerate(layers)}
    return sorted(found, key=lambda one: (one.step, _ORDER.index(one.name), place.get(one.layer, 1)))


_ORDER = (
    "not-finite", "loss-not-finite", "dead", "stopped", "not-updated", "large-update", "weights-grow", "exploding",
    "spike", "vanishing",
    "loss-spike", "diverging", "loss-scale",
)  # fmt: skip


def _losses(series: Series) -> Iterator[Alert]:
    known = [(step.step, step.loss) for step in series.steps if step.loss is not None and not step.is_skipped]
    bad = next((step for step, loss in known if not math.isfinite(loss)), None)
    if bad is not None:
        yield Alert("loss-not-finite", bad, "", say("the loss is not finite"))
    finite = [(step, loss) for step, loss in known if math.isfinite(loss)]
    values = [loss for _, loss in finite]
    for at in loss_spikes(values):
        text = say(
            "the loss is {loss}, before it was about {usual}",
            loss=f"{values[at]:.4g}",
            usual=f"{_usual(values, at):.4g}",
        )
        yield Alert("loss-spike", finite[at][0], "", text)
    if len(values) > 2 * WINDOW:
        first, last = median(values[:5]), median(values[-WINDOW:])
        if last > _DIVERGED * abs(first) and last > 2 * min(map(abs, values)):
            below = (at for at in reversed(range(len(values))) if values[at] <= _DIVERGED * abs(first))
            start = min(next(below, -1) + 1, len(values) - 1)
            text = say(
                "the loss grows: {last} in the end, {first} in the beginning", last=f"{last:.4g}", first=f"{first:.4g}"
            )
            yield Alert("diverging", finite[start][0], "", text)


def loss_spikes(values: Sequence[float]) -> list[int]:
    """Where a loss is far above all that came in the window before; of steps in a row the first.

    How far is judged by how much the logarithm of the loss varies: small batches make losses of all sizes. A tenth of
    the first loss is the least that counts: where nearly nothing is left, each batch differs by its size.
    """
    least = 0.1 * abs(median(values[:5])) if values else 0.0
    found = [at for at in range(WINDOW, len(values)) if _is_spike(values[at], values[at - WINDOW : at], least)]
    return [at for at in found if at - 1 not in found]


def _is_spike(value: float, before: Sequence[float], least: float) -> bool:
    usual = median(before)
    if not (value > _LOSS_SPIKE * usual and value > max(before) + least):
        return False
    return _is_far(value, before)


def _is_far(value: float, before: Sequence[float]) -> bool:
    """Whether a value is many deviations above those before: of their logarithms, where all are above zero."""
    known = [one for one in before if math.isfinite(one)]
    usual = median(known)
    if min(known) <= 0:
        return value > usual + _DEVIATIONS * _MAD * median(abs(one - usual) for one in known)
    spread = _MAD * median(abs(math.log(one / usual)) for one in known)
    return math.log(value / usual) > _DEVIATIONS * spread


def _usual(values: Sequence[float], at: int) -> float:
    return median(values[max(0, at - WINDOW) : at])


def _scaling(series: Series) -> Iterator[Alert]:
    skipped = 0
    first_scale = next((step.loss_scale for step in series.steps if step.loss_scale is not None), None)
    for step in series.steps:
        skipped = skipped + 1 if step.is_skipped else 0
        is_low = step.loss_scale is not None and step.loss_scale < 1 <= (first_scale or 0)
        if (skipped == _SKIPS and step.step >= 2 * _SKIPS) or is_low or skipped == 4 * _SKIPS:
            text = say(
                "loss scale {scale}, {steps} steps left out in a row", scale=f"{step.loss_scale or 0:g}", steps=skipped
            )
            yield Alert("loss-scale", step.step, "", text)
            return


def _not_finite(layer: Layer, steps: list[int]) -> Iterator[Alert]:
    at = next((at for at, bad in enumerate(layer.not_finite) if bad > 0), None)
    if at is not None:
        text = say("{number} values of the gradient are not finite", number=f"{layer.not_finite[at]:,.0f}")
        yield Alert("not-finite", steps[at], layer.name, text)


def _still(layer: Layer, steps: list[int]) -> Iterator[Alert]:
    """Layers whose gradient is zero, ends, or moves nothing."""
    zero = _lasting([norm == 0 for norm in layer.grad_norm])
    if zero is not None:
        text = say("the gradient is exactly zero for {steps} steps and more", steps=WINDOW)
        yield Alert("dead", steps[zero], layer.name, text)
    had = next((at for at, norm in enumerate(layer.grad_norm) if norm > 0), None)
    gone = _lasting([math.isnan(norm) for norm in layer.grad_norm])
    if had is not None and gone is not None and gone > had:
        yield Alert("stopped", steps[gone], layer.name, say("no gradient arrives any more"))


def _lasting(flags: Sequence[bool], steps: int = WINDOW) -> int | None:
    """Where the first stretch of so many true values begins."""
    length = 0
    for at, flag in enumerate(flags):
        length = length + 1 if flag else 0
        if length == steps:
            return at - steps + 1
    return None


def _spikes(layers: list[Layer], steps: list[int]) -> Iterator[Alert]:
    """Steps at which a gradient is far above all of the window before; of a step's layers the one furthest above."""
    loudest = _loudest(layers, len(steps))
    found: dict[int, list[tuple[float, float, str]]] = {}
    for layer in layers:
        # Where nearly nothing is left to learn, one odd batch is far above the others, and far below the beginning.
        first = max((one for one in layer.grad_norm[:5] if math.isfinite(one)), default=0.0)
        for at in range(WINDOW, len(steps)):
            norm, before = layer.grad_norm[at], layer.grad_norm[at - WINDOW : at]
            largest = max((one for one in before if math.isfinite(one)), default=0.0)
            if math.isfinite(norm) and largest > 0 and norm > max(_SPIKE * largest, first) and _is_far(norm, before):
                found.setdefault(at, []).append((norm / largest, norm, layer.name))
    for at, entries in found.items():
        # It must be louder than any layer was in the window before: what clipping and the optimizer would not notice
        # is no trouble.
        loud = [entry for entry in entries if entry[1] > max(loudest[at - WINDOW : at])]
        if loud and at - 1 not in found:
            # A gradient that grows in the backward pass grows in all layers before: the last one has it first.
            most = max(factor for factor, _, _ in loud)
            factor, _, name = [entry for entry in loud if entry[0] > most / 3][-1]
            text = say(
                "the gradient norm is {factor} times the largest of the {steps} steps before",
                factor=f"{factor:.0f}",
                steps=WINDOW,
            )
            yield Alert("spike", steps[at], name, text)


def _loudest(layers: list[Layer], steps: int) -> list[float]:
    """The largest gradient norm among the layers at each step."""
    finite = ([one if math.isfinite(one) else 0.0 for one in layer.grad_norm] for layer in layers)
    return [max(norms) for norms in zip(*finite, strict=True)] if layers else [0.0] * steps


def _vanishing(layers: list[Layer], steps: list[int]) -> Iterator[Alert]:
    """Layers whose gradient is next to nothing beside that of the others, for a whole window."""
    if len(layers) < 3:
        return
    loudest = _loudest(layers, len(steps))
    weak = {
        layer.name: start
        for layer in layers
        if (start := _lasting([0 < norm < _VANISHED * top for norm, top in zip(layer.grad_norm, loudest, strict=True)]))
        is not None
    }
    if weak:
        # Of layers that all vanish the one where it shows first in the backward pass, which is the last.
        name = list(weak)[-1]
        share = say(
            "the gradient of {number} layers is less than {share} of the largest, up to this one in the backward pass",
            number=len(weak),
            share=_VANISHED,
        )
        yield Alert("vanishing", steps[weak[name]], name, share)


def _median_of(values: list[float]) -> float:
    known = [one for one in values if math.isfinite(one) and one > 0]
    return median(known) if known else 0.0


def _growing(layers: list[Layer], steps: list[int]) -> Iterator[Alert]:
    """Layers whose gradient grew and stays: the one that grew first, and most.

    It must be far above what any layer had in the beginning too: where a model begins on a plateau, or a branch at
    zero, gradients of single layers grow by any factor while it learns.
    """
    early = {
        layer.name: [one for one in layer.grad_norm[:WINDOW] if math.isfinite(one) and one > 0] for layer in layers
    }
    largest = max((median(norms) for norms in early.values() if norms), default=0.0)
    grown = []
    for layer in layers:
        if len(early[layer.name]) < WINDOW // 2:
            continue
        usual = median(early[layer.name])
        least = max(_GROWN * usual, 10 * largest)
        start = _lasting([norm > least for norm in layer.grad_norm])
        if start is not None:
            grown.append((start, -median(layer.grad_norm[start:]) / usual, layer.name))
    if grown:
        start = min(entry[0] for entry in grown)
        most = min(factor for at, factor, _ in grown if at == start)
        start, factor, name = [entry for entry in grown if entry[0] == start and entry[1] < most / 3][-1]
        text = say(
            "the gradient norm is {factor} times what it was in the first steps, and stays so", factor=f"{-factor:.0f}"
        )
        yield Alert("exploding", steps[start], name, text)


def _updates(layers: list[Layer], steps: list[int]) -> Iterator[Alert]:
    """Layers of which each step replaces a large part, whose weights grow, or that hardly move."""
    yield from _moving_too_little(layers, steps)
    yield from _outgrowing(layers, steps)
    found = []
    for layer in layers:
        start = _lasting([ratio > _LARGE_UPDATE for ratio in layer.update_ratio])
        if start is not None:
            found.append((start, -median(layer.update_ratio[start : start + WINDOW]), layer.name))
    if found:
        start, share, name = min(found)
        text = say("each step changes the weights by {share} of their size", share=f"{-share:.0%}")
        yield Alert("large-update", steps[start], name, text)


def _moving_too_little(layers: list[Layer], steps: list[int]) -> Iterator[Alert]:
    """Layers that have gradients and stay, while others move: the dtype cannot add so little, or the rate is off."""
    ratios = [layer.update_ratio for layer in layers]
    usual = [_median_of([ratio[at] for ratio in ratios]) for at in range(len(steps))]
    for layer, ratio in zip(layers, ratios, strict=True):
        start = _lasting(
            [
                one < _FIXED and norm > 0 and rate > 0 and (other > 100 * _FIXED or other == 0)
                for one, norm, rate, other in zip(ratio, layer.grad_norm, layer.learning_rates, usual, strict=True)
            ]
        )
        if start is not None:
            text = say("has gradients, but its weights stay: a step changes less than {share} of them", share=_FIXED)
            yield Alert("not-updated", steps[start], layer.name, text)


def _outgrowing(layers: list[Layer], steps: list[int]) -> Iterator[Alert]:
    """Layers whose weights are many times what they were, and beyond those that all layers began with."""
    largest = max((layer.weight_norm[0] for layer in layers if layer.weight_norm), default=0.0)
    for layer in layers:
        first = layer.weight_norm[0] or math.inf  # what begins at zero grows by any factor
        start = next(
            (at for at, norm in enumerate(layer.weight_norm) if norm > _OUTGROWN * first and norm > 3 * largest), None
        )
        if start is not None:
            text = say(
                "the weights are {factor} times as large as in the beginning",
                factor=f"{layer.weight_norm[start] / first:.0f}",
            )
            yield Alert("weights-grow", steps[start], layer.name, text)
