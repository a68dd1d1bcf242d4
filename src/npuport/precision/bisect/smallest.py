"""The smallest part of a set that still makes something hold (delta debugging, Zeller and Hildebrandt 2002, ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

Unit = TypeVar("Unit")


class OutOfRunsError(Exception):
    """The limit of runs is reached."""


def smallest(
    units: Sequence[Unit], holds: Callable[[tuple[Unit, ...]], bool], better: Callable[[tuple[Unit, ...]], None]
) -> tuple[Unit, ...]:
    """A part of ``units`` for which ``holds`` is true, and of which no unit can be left out.

    ``holds`` is true of all units and false of none; it is asked about parts in the order of ``units``. ``better`` is
    told each smaller part that holds, so that what is known is not lost when ``holds`` ends the search by an exception.
    """
    current, pieces = tuple(units), 2
    while len(current) > 1:
        parts = _divided(current, pieces)
        smaller = next((part for part in parts if holds(part)), None)
        if smaller is None and pieces > 2:
            rests = [tuple(unit for unit in current if unit not in set(part)) for part in parts]
            smaller = next((rest for rest in rests if holds(rest)), None)
            following = max(pieces - 1, 2)
        else:
            following = 2
        if smaller is not None:
            current, pieces = smaller, following
            better(current)
        elif pieces >= len(current):
            break
        else:
            pieces = min(2 * pieces, len(current))
    return current


def _divided(units: tuple[Unit, ...], pieces: int) -> list[tuple[Unit, ...]]:
    """As many parts of nearly equal size, in order."""
    bounds = [round(number * len(units) / pieces) for number in range(pieces + 1)]
    return [units[low:high] for low, high in pairwise(bounds) if high > low]
