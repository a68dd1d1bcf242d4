"""Which entries of one sequence are which of another, in time that grows nearly with their lengths.

difflib finds good matches in short sequences, and takes the square of the length in long ones. So a long sequence is
first cut at entries that occur equally often in both (those that occur once before all others: the patience algorithm
of Bram Cohen), and only the stretches between are given to difflib.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher

_SHORT = 100_000  # product of lengths that difflib matches within a moment
_WINDOW = 100  # entries of each side that are matched at once where nothing cuts a long stretch


def matches(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of places with equal entries, ascending in both."""
    numbers: dict[Hashable, int] = {}
    a = [numbers.setdefault(entry, len(numbers)) for entry in one]
    b = [numbers.setdefault(entry, len(numbers)) for entry in other]
    found: list[tuple[int, int]] = []
    todo = [(0, len(a), 0, len(b))]
    while todo:  # no recursion: the stretches of a long step may nest deeply
        start, end, from_, to = todo.pop()
        while start < end and from_ < to and a[start] == b[from_]:
            found.append((start, from_))
            start, from_ = start + 1, from_ + 1
        while start < end and from_ < to and a[end - 1] == b[to - 1]:
            end, to = end - 1, to - 1
            found.append((end, to))
        if start == end or from_ == to:
            continue
        if (end - start) * (to - from_) <= _SHORT:
            found += _by_difflib(a, b, start, end, from_, to)
            continue
        anchors = _anchors(a, b, start, end, from_, to)
        if not anchors:
            found += _by_windows(a, b, start, end, from_, to)
            continue
        found += anchors
        for x, y in [*anchors, (end, to)]:
            if start < x and from_ < y:
                todo.append((start, x, from_, y))
            start, from_ = x + 1, y + 1
    return sorted(found)


def _by_difflib(
    a: Sequence[int], b: Sequence[int], start: int, end: int, from_: int, to: int
) -> Iterator[tuple[int, int]]:
    matcher = SequenceMatcher(None, a[start:end], b[from_:to], autojunk=False)
    for x, y, size in matcher.get_matching_blocks():
        for at in range(size):
            yield start + x + at, from_ + y + at


def _by_windows(a: Sequence[int], b: Sequence[int], start: int, end: int, from_: int, to: int) -> list[tuple[int, int]]:
    """Match the fronts of two stretches, and go on behind what was matched; the last quarter of a window is left to the
    next one, which sees what follows."""
    found: list[tuple[int, int]] = []
    while start < end and from_ < to:
        last, last_b = min(start + _WINDOW, end), min(from_ + _WINDOW, to)
        is_last = last == end and last_b == to
        part = list(_by_difflib(a, b, start, last, from_, last_b))
        kept = part if is_last else [(x, y) for x, y in part if x < last - _WINDOW // 4 and y < last_b - _WINDOW // 4]
        found += kept
        if is_last:
            break
        start, from_ = (kept[-1][0] + 1, kept[-1][1] + 1) if kept else (last, last_b)
    return found


def _anchors(a: Sequence[int], b: Sequence[int], start: int, end: int, from_: int, to: int) -> list[tuple[int, int]]:
    """Entries that occur once in both stretches, or else equally often; the longest series that ascends in both."""
    counts = Counter(a[start:end]), Counter(b[from_:to])
    equal = {entry for entry, number in counts[0].items() if counts[1][entry] == number}
    wanted = {entry for entry in equal if counts[0][entry] == 1} or equal
    places: dict[tuple[int, int], int] = {}
    seen: Counter[int] = Counter()
    for y in range(from_, to):
        if b[y] in wanted:
            places[b[y], seen[b[y]]] = y
            seen[b[y]] += 1
    seen.clear()
    pairs = []
    for x in range(start, end):
        if a[x] in wanted:
            pairs.append((x, places[a[x], seen[a[x]]]))
            seen[a[x]] += 1
    return _ascending(pairs)


def _ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of pairs, ascending in the first place, that ascends in the second too."""
    ends: list[int] = []  # the smallest second place at which a series of each length ends
    at: list[int] = []
    before: list[int] = []
    for number, (_, y) in enumerate(pairs):
        length = bisect_left(ends, y)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(y)
            at.append(number)
        else:
            ends[length], at[length] = y, number
    series: list[tuple[int, int]] = []
    number = at[-1] if at else -1
    while number >= 0:
        series.append(pairs[number])
        number = before[number]
    return series[::-1]
