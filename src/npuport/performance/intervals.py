"""Arithmetic of spans of time. ``Spans`` are sorted, do not touch or overlap, and are half open: [start, end)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

import polars as pl

Span = tuple[int, int]
Spans = list[Span]


def union(spans: Iterable[Span]) -> Spans:
    """The time that any of the spans covers; empty spans cover none."""
    result: Spans = []
    start = end = None
    for first, last in sorted(spans):
        if last <= first:
            continue
        if end is None or first > end:
            if start is not None and end is not None:
                result.append((start, end))
            start, end = first, last
        elif last > end:
            end = last
    if start is not None and end is not None:
        result.append((start, end))
    return result


def intersect(one: Spans, other: Spans) -> Spans:
    """The time that both cover."""
    result: Spans = []
    i = j = 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            result.append((start, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return result


def subtract(one: Spans, other: Spans) -> Spans:
    """The time that ``one`` covers and ``other`` does not."""
    result: Spans = []
    j = 0
    for first, last in one:
        start = first
        while j < len(other) and other[j][1] <= start:
            j += 1
        k = j
        while k < len(other) and other[k][0] < last:
            if other[k][0] > start:
                result.append((start, other[k][0]))
            start = max(start, other[k][1])
            k += 1
        if start < last:
            result.append((start, last))
    return result


def clip(spans: Spans, start: int, end: int) -> Spans:
    """The part of the spans between two times."""
    if end <= start:
        return []
    low = bisect_right(spans, start, key=lambda span: span[1])
    high = bisect_left(spans, end, key=lambda span: span[0])
    return [(max(first, start), min(last, end)) for first, last in spans[low:high]]


def total(spans: Iterable[Span]) -> int:
    """The length of all spans together, in nanoseconds."""
    return sum(last - first for first, last in spans)


def spans_of(frame: pl.DataFrame) -> Spans:
    """The time that any row of a table covers, by its columns ``start_ns`` and ``end_ns``."""
    if frame.is_empty():
        return []
    # Merged by Polars, so that a million rows become few tuples: a row opens a span where nothing before reaches it.
    ordered = frame.select("start_ns", "end_ns").filter(pl.col("end_ns") > pl.col("start_ns")).sort("start_ns")
    reached = pl.col("end_ns").cum_max().shift(1)
    merged = (
        ordered.with_columns((pl.col("start_ns") > reached).fill_null(value=True).cum_sum().alias("span"))
        .group_by("span", maintain_order=True)
        .agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    )
    return list(merged.select("start_ns", "end_ns").iter_rows())
