"""The page of two runs' curves: the verdict, the criteria, and a chart for each quantity, drawn as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npuport.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, points, range_of, ticks, x_of, y_of

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
    low, high = range_of([*reference, *candidate])
    below, above = range_of([*difference, 0.0])
    first, last = steps[0], steps[-1] if steps[-1] > steps[0] else steps[0] + 1
    return Chart(
        metric=metric,
        reference=points(steps, reference, first, last, low, high),
        candidate=points(steps, candidate, first, last, low, high),
        difference=points(steps, difference, first, last, below, above),
        across=tuple((x_of(at, first, last), f"{at:,.0f}") for at in ticks(first, last)),
        up=tuple((y_of(at, low, high), f"{at:.4g}") for at in ticks(low, high)),
        up_difference=tuple((y_of(at, below, above), f"{at:+.2%}") for at in ticks(below, above)),
        marks=tuple(x_of(step, first, last) for step in marks if first <= step <= last),
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
        left=LEFT,
        bottom=HEIGHT - BOTTOM,
        right=WIDTH - RIGHT,
        language=language(),
        t=translate,
    )
