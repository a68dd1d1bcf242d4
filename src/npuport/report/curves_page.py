"""The page of two runs' curves: the verdict, the criteria, and a chart for each quantity, drawn as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 960, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 28
_POINTS = 1200  # more than the chart has pixels


@dataclass(frozen=True)
class Chart:
    """One quantity of both runs, as the points of SVG lines, with the labels of the axes and marked steps."""

    metric: str
    reference: str
    candidate: str
    difference: str  # relative difference, on the same steps, in a chart of its own
    across: tuple[tuple[float, str], ...]  # (x, label)
    up: tuple[tuple[float, str], ...]  # (y, label) of the values
    up_difference: tuple[tuple[float, str], ...]
    marks: tuple[float, ...]  # x of steps that were observed


def chart_of(
    metric: str, steps: Sequence[int], reference: Sequence[float], candidate: Sequence[float], marks: Sequence[int]
) -> Chart:
    """A chart of two curves on common steps; values that are not finite leave a gap."""
    every = max(1, len(steps) // _POINTS)
    kept = range(0, len(steps), every)
    steps = [steps[at] for at in kept]
    reference, candidate = [reference[at] for at in kept], [candidate[at] for at in kept]
    difference = [
        (b - a) / abs(a) if math.isfinite(a) and math.isfinite(b) and a else math.nan
        for a, b in zip(reference, candidate, strict=True)
    ]
    low, high = _range([*reference, *candidate])
    below, above = _range([*difference, 0.0])
    first, last = steps[0], steps[-1] if steps[-1] > steps[0] else steps[0] + 1
    return Chart(
        metric=metric,
        reference=_points(steps, reference, first, last, low, high),
        candidate=_points(steps, candidate, first, last, low, high),
        difference=_points(steps, difference, first, last, below, above),
        across=tuple((_x(at, first, last), f"{at:,.0f}") for at in _ticks(first, last)),
        up=tuple((_y(at, low, high), f"{at:.4g}") for at in _ticks(low, high)),
        up_difference=tuple((_y(at, below, above), f"{at:+.2%}") for at in _ticks(below, above)),
        marks=tuple(_x(step, first, last) for step in marks if first <= step <= last),
    )


def curves_page(document: dict[str, Any], charts: Sequence[Chart], sentences: dict[str, list[str]]) -> str:
    """The page. ``document`` is what `--json` prints; ``sentences`` are the observations in the reader's language."""
    from npuport.report.language import language, translate
    from npuport.report.pages import template

    return template("curves.html.j2").render(
        document=document,
        charts=charts,
        sentences=sentences,
        width=WIDTH,
        height=HEIGHT,
        left=_LEFT,
        bottom=HEIGHT - _BOTTOM,
        right=WIDTH - _RIGHT,
        language=language(),
        t=translate,
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return low - room, high + room


def _points(steps: Sequence[int], values: Sequence[float], first: int, last: int, low: float, high: float) -> str:
    """The path of a line: it begins anew after a value that is not finite."""
    path, pen = [], "M"
    for step, value in zip(steps, values, strict=True):
        if math.isfinite(value):
            path.append(f"{pen}{_x(step, first, last):.1f} {_y(value, low, high):.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(path)


def _x(step: float, first: float, last: float) -> float:
    return _LEFT + (step - first) / (last - first) * (WIDTH - _LEFT - _RIGHT)


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - _BOTTOM - (value - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)


def _ticks(low: float, high: float) -> list[float]:
    """Four to eight round numbers within a range."""
    raw = (high - low) / 5
    size = 10 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= raw)
    first = math.ceil(low / step)
    return [at * step for at in range(first, math.floor(high / step) + 1)]
