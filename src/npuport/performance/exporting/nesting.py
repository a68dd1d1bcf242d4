"""Lanes in which every two spans either nest or do not touch: what trace viewers need to draw them rightly."""

from __future__ import annotations

from collections.abc import Sequence

_ROUNDING = 1000  # ns: profilers write ends that are off by as much


def lanes_of(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lane of each span, and the end to draw it with.

    ``spans`` are (start, end), by start, and of those that start together the longest first. A span that begins inside
    of another one and ends up to a microsecond behind it is cut to it; one that ends later gets another lane.
    """
    open_ends: list[list[int]] = []  # for each lane the ends of spans that are open, the innermost last
    placed: list[tuple[int, int]] = []
    for start, end in spans:
        for ends in open_ends:
            while ends and ends[-1] <= start:
                ends.pop()
        lane = next((lane for lane, ends in enumerate(open_ends) if not ends or end - ends[-1] <= _ROUNDING), None)
        if lane is None:
            lane = len(open_ends)
            open_ends.append([])
        drawn = min([end, *open_ends[lane][-1:]])
        open_ends[lane].append(drawn)
        placed.append((lane, drawn))
    return placed
