"""Line charts as SVG paths: places of values, round numbers on the axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTH, HEIGHT = 960, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 28


def range_of(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis on which all finite values have room."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return low - room, high + room


def points(steps: Sequence[int], values: Sequence[float], first: int, last: int, low: float, high: float) -> str:
    """The path of a line: it begins anew after a value that is not finite."""
    path, pen = [], "M"
    for step, value in zip(steps, values, strict=True):
        if math.isfinite(value):
            path.append(f"{pen}{x_of(step, first, last):.1f} {y_of(value, low, high):.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(path)


def x_of(step: float, first: float, last: float) -> float:
    return LEFT + (step - first) / (last - first) * (WIDTH - LEFT - RIGHT)


def y_of(value: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def ticks(low: float, high: float) -> list[float]:
    """Four to eight round numbers within a range."""
    raw = (high - low) / 5
    size = 10 ** math.floor(math.log10(raw))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= raw)
    first = math.ceil(low / step)
    return [at * step for at in range(first, math.floor(high / step) + 1)]
