"""What the page of a training's state is made of: curves with few points, and layers over time as bytes."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from npuport.precision.training_state.history import Series, StateStep
from npuport.precision.training_state.layers import ends_of, layers_of, steps_of

_POINTS = 400  # of a curve, where there are more
_MOST_BINS, _FEWEST_BINS = 120, 24
_CELLS = 100_000  # of a map: fewer bins for many layers
_COSINES = 200_000  # at most as many are computed
_CODES = 250  # a value between the ends of a map is a byte up to this; above: NOT_FINITE and MISSING
NOT_FINITE, MISSING = 254, 255


@dataclass(frozen=True)
class Curve:
    """One quantity over the steps; values that are not finite leave gaps. ``group``: curves of one chart."""

    group: str
    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


def curves_of(series: Series) -> list[Curve]:
    """Loss, gradient norm, learning rates and loss scale, where the run has them."""
    made = [step for step in series.steps if not step.is_skipped]
    found = [
        _curve("loss", "", series.steps, lambda step: step.loss),
        _curve("gradient norm", "before clipping", series.steps, lambda step: step.clipped_from),
        _curve("gradient norm", "of the step", made, lambda step: _norm(series, step)),
        *(
            _curve("learning rate", f"group {group}" if _groups(series) > 1 else "", made, _rate(group))
            for group in range(_groups(series))
        ),
        _curve("loss scale", "", series.steps, lambda step: step.loss_scale),
    ]
    return [one for one in found if one.steps]


def _groups(series: Series) -> int:
    return max((len(step.learning_rates) for step in series.steps), default=0)


def _rate(group: int) -> Callable[[StateStep], float | None]:
    return lambda step: step.learning_rates[group] if group < len(step.learning_rates) else None


def _norm(series: Series, step: StateStep) -> float | None:
    norms = [series.value(step, at, "grad_norm") for at in range(len(series.names))]
    known = [one for one in norms if not math.isnan(one)]
    return math.hypot(*known) if known else None


def _curve(group: str, name: str, steps: Sequence[StateStep], value: Callable[[StateStep], float | None]) -> Curve:
    known = [(step.step, one) for step in steps if (one := value(step)) is not None]
    kept = thinned([step for step, _ in known], [one for _, one in known])
    return Curve(group, name, *kept)


def thinned(steps: Sequence[int], values: Sequence[float]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Few points of a long curve: the least and the largest of each stretch, and those that are not finite."""
    if len(steps) <= _POINTS:
        return tuple(steps), tuple(values)
    size = math.ceil(2 * len(steps) / _POINTS)
    kept: list[int] = []
    for start in range(0, len(steps), size):
        part = range(start, min(start + size, len(steps)))
        finite = [at for at in part if math.isfinite(values[at])]
        odd = [at for at in part if not math.isfinite(values[at])][:1]
        ends = [min(finite, key=values.__getitem__), max(finite, key=values.__getitem__)] if finite else []
        kept += sorted({*ends, *odd})
    return tuple(steps[at] for at in kept), tuple(values[at] for at in kept)


def maps_of(series: Series) -> dict[str, Any]:
    """The layers over time: for each measure a byte for each layer and bin, on a scale between two ends.

    ``bins`` are the first and last step of each. A byte is 0 at ``low`` and 250 at ``high`` (logarithms to the base 10
    where ``log``), 254 where a value is not finite, 255 where there is none.
    """
    layers, steps = layers_of(series), steps_of(series)
    number = max(_FEWEST_BINS, min(_MOST_BINS, _CELLS // max(len(layers), 1)))
    size = math.ceil(len(steps) / number) if steps else 1
    bins = [range(start, min(start + size, len(steps))) for start in range(0, len(steps), size)]
    directions = directions_of(series)
    measures: dict[str, tuple[list[Sequence[float]], Callable[[list[float]], float], bool]] = {
        "gradient norm": ([layer.grad_norm for layer in layers], max, True),
        "direction": ([directions[layer.name] for layer in layers], median, False),
        "update ratio": ([layer.update_ratio for layer in layers], max, True),
        "weight norm": ([layer.weight_norm for layer in layers], max, True),
    }
    return {
        "layers": [layer.name for layer in layers],
        "bins": [[steps[one[0]], steps[one[-1]]] for one in bins],
        "measures": [_map(name, *given, bins) for name, given in measures.items()],
        "ends": [
            [ends_of(layer.grad_norm), ends_of(layer.update_ratio), ends_of(layer.weight_norm)] for layer in layers
        ],
    }


def directions_of(series: Series) -> dict[str, tuple[float, ...]]:
    """The cosine between the gradient of each step and that of the step before, for each layer; NaN for the first.

    From 16 sums with random signs: right to about a quarter. Of long runs not every step is looked at.
    """
    steps = [step for step in series.steps if not step.is_skipped]
    every = max(1, len(steps) * len(series.names) // _COSINES)
    found = {}
    for name, parameters in series.layers().items():
        cosines = [math.nan] * min(len(steps), 1)
        for number, (one, other) in enumerate(pairwise(steps)):
            if number % every:
                cosines.append(math.nan)
                continue
            pairs = [
                (a, b)
                for at in parameters
                for a, b in zip(series.sketch(one, at), series.sketch(other, at), strict=True)
                if math.isfinite(a) and math.isfinite(b)
            ]
            sizes = [math.fsum(pair[side] ** 2 for pair in pairs) for side in (0, 1)]
            product = math.fsum(a * b for a, b in pairs)
            cosines.append(product / math.sqrt(sizes[0] * sizes[1]) if sizes[0] * sizes[1] > 0 else math.nan)
        found[name] = tuple(cosines)
    return found


def _map(
    name: str, rows: Sequence[Sequence[float]], fold: Callable[[list[float]], float], log: bool, bins: Sequence[range]
) -> dict[str, Any]:
    cells = [[_folded([row[at] for at in one], fold) for one in bins] for row in rows]
    known = [value for row in cells for value in row if math.isfinite(value) and (value > 0 or not log)]
    low, high = (min(known), max(known)) if known else (1.0, 1.0)
    if log:
        low, high = math.log10(low), math.log10(high)
    else:
        low, high = -1.0, 1.0
    codes = bytes(_code(value, low, high, log) for row in cells for value in row)
    return {"name": name, "low": low, "high": high, "log": log, "codes": base64.b64encode(codes).decode()}


def _folded(values: list[float], fold: Callable[[list[float]], float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return math.nan
    return fold(known) if all(map(math.isfinite, known)) else math.inf


def _code(value: float, low: float, high: float, log: bool) -> int:
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return NOT_FINITE
    if log and value <= 0:
        return 0
    place = math.log10(value) if log else value
    return round((place - low) / (high - low) * _CODES) if high > low else _CODES // 2
