"""What the HTML page of a profile shows, as plain values. Times are whole nanoseconds, in a step from its start on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from npuport.performance.analysis import RankAnalysis
from npuport.performance.findings.base import PerformanceFinding
from npuport.performance.flame import Flame, columns_of, flame_of
from npuport.performance.intervals import Spans, clip, intersect, spans_of, total
from npuport.performance.step_split import Part, StepSplit

_STEPS = 1_000
_SPANS = 40_000  # of all timelines of a rank
_BINS = 4_000  # of a step with more spans than bins: each shows the part that fills most of it
_KERNELS = 1_000  # of a timeline, by name
_POINTS = 400  # of a curve; each is the range of values in its time
_ROWS = 500  # of a table
_EVIDENCE = 5  # events of a finding
_LONGEST = 240  # characters of a name


def average_step(rank: RankAnalysis) -> dict[str, Any] | None:
    """An average step with its parts, and how far apart steps are; None where there is none."""
    splits = rank.splits
    if not splits:
        return None
    parts: dict[str, int] = {}
    for one in splits:
        for part, time in one.parts.items():
            parts[part.name.lower()] = parts.get(part.name.lower(), 0) + time
    return {
        "steps": len(splits),
        "shortest": min(one.duration for one in splits),
        "longest": max(one.duration for one in splits),
        "parts": {name: time // len(splits) for name, time in parts.items()},
        "computing": sum(one.computing for one in splits) // len(splits),
        "overlapped": sum(one.overlapped for one in splits) // len(splits),
    }


def steps_data(rank: RankAnalysis) -> list[dict[str, Any]]:
    """Each step with its parts, which add up to it; of very many steps the first ones."""
    return [
        {
            "step": one.step,
            "duration": one.duration,
            "parts": {part.name.lower(): time for part, time in one.parts.items()},
        }
        for one in rank.splits[:_STEPS]
    ]


def details_data(rank: RankAnalysis, findings: Sequence[PerformanceFinding]) -> dict[str, Any]:
    """Steps, timelines, frames, tables, curves and evidence of one rank."""
    flame = flame_of(rank.context)
    steps = max(len(rank.splits), 1)
    return {
        "steps": steps_data(rank),
        "timelines": timelines(rank.splits[:_STEPS], findings, rank.context.kernels),
        "flame": {"after": flame.named_after, **columns_of(flame.root, steps)},
        "kernels": kernel_rows(rank),
        "operators": operator_rows(flame, steps),
        "memory": memory_curves(rank),
        "held": held_rows(rank),
        "communication": communication_rows(rank),
        "evidence": [evidence(rank, one) for one in findings],
    }


# ------------------------------------------------------------------------------------------------------ timelines


def timelines(
    splits: Sequence[StepSplit], findings: Sequence[PerformanceFinding], kernels: pl.DataFrame
) -> list[dict[str, Any]]:
    """Steps with parts, findings and longest kernels over time: the typical, the longest, the shortest, then others.

    As many as fit on a page; the first is always there. Spans are [from, length, from the end of that one, length, …].
    """
    by_length = sorted(range(len(splits)), key=lambda place: splits[place].duration)
    if not by_length:
        return []
    order = dict.fromkeys([by_length[len(by_length) // 2], by_length[-1], by_length[0], *range(len(splits))])
    result: list[dict[str, Any]] = []
    left = _SPANS
    for place in order:
        one = splits[place]
        bin_ns, spans = _drawable(one)
        found = [clip(finding.spans, one.start_ns, one.end_ns) for finding in findings]
        names, longest = _longest(kernels, one)
        cost = sum(len(some) for some in (*spans.values(), *found)) + len(longest)
        if result and cost > left:
            break
        left -= cost
        result.append(
            {
                "at": place,
                "bin": bin_ns,
                "parts": {part.name.lower(): _packed(some, one.start_ns) for part, some in spans.items()},
                "kernels": {"names": names, "spans": longest},
                "findings": [_packed(_thinned(some, one.duration // _BINS), one.start_ns) for some in found],
            }
        )
    return result


def _drawable(split: StepSplit) -> tuple[int, Mapping[Part, Spans]]:
    """The spans of a step; where there are too many, of each bin of time the part that fills most of it."""
    if sum(len(spans) for spans in split.spans.values()) <= _BINS:
        return 0, split.spans
    width = max(split.duration // _BINS, 1)
    bins: dict[int, dict[Part, int]] = {}
    for part, spans in split.spans.items():
        for start, end in spans:
            for place in range((start - split.start_ns) // width, (end - 1 - split.start_ns) // width + 1):
                first = split.start_ns + place * width
                inside = bins.setdefault(place, {})
                inside[part] = inside.get(part, 0) + min(end, first + width) - max(start, first)
    drawn: dict[Part, Spans] = {}
    for place, inside in sorted(bins.items()):
        spans = drawn.setdefault(max(inside, key=lambda part: inside[part]), [])
        start = split.start_ns + place * width
        end = min(start + width, split.end_ns)
        if spans and spans[-1][1] == start:
            spans[-1] = spans[-1][0], end
        else:
            spans.append((start, end))
    return width, drawn


def _longest(kernels: pl.DataFrame, split: StepSplit) -> tuple[list[str], list[int]]:
    """Names, and [place of the name, start in the step, length, …] of a step's longest of ``kernels`` (by start)."""
    first, last = (bisect_left(kernels["start_ns"], time) for time in (split.start_ns, split.end_ns))
    inside = kernels[first:last]
    length = pl.col("end_ns") - pl.col("start_ns")
    table = inside.select(pl.coalesce("type", "name").str.head(_LONGEST), "start_ns", length.alias("length"))
    chosen = table.sort("length", descending=True).head(_KERNELS).sort("start_ns")
    names = {name: place for place, name in enumerate(dict.fromkeys(chosen["type"].to_list()))}
    flat: list[int] = []
    for name, start, time in chosen.iter_rows():
        flat += [names[name], start - split.start_ns, time]
    return list(names), flat


def _thinned(spans: Spans, nearest: int) -> Spans:
    """The spans with those nearer to one another than ``nearest`` as one."""
    result: Spans = []
    for start, end in spans:
        if result and start - result[-1][1] < nearest:
            result[-1] = result[-1][0], end
        else:
            result.append((start, end))
    return result


def _packed(spans: Spans, start: int) -> list[int]:
    packed = []
    for first, last in spans:
        packed += [first - start, last - first]
        start = last
    return packed


# --------------------------------------------------------------------------------------------------------- tables


def kernel_rows(rank: RankAnalysis) -> list[list[Any]]:
    """[type or name, kind of core, count, time, longest] of the kernels of an average step; the costliest first."""
    steps = max(len(rank.splits), 1)
    length = pl.col("end_ns") - pl.col("start_ns")
    name = pl.coalesce("type", "name").str.head(_LONGEST).alias("name")
    grouped = rank.context.kernels.group_by(name, "core").agg(
        pl.len().alias("count"), length.sum().alias("time"), length.max().alias("longest")
    )
    ordered = grouped.sort("time", "name", descending=[True, False])
    return [
        [name, core or "", round(count / steps, 2), time // steps, longest]
        for name, core, count, time, longest in ordered.head(_ROWS).iter_rows()
    ]


def operator_rows(flame: Flame, steps: int) -> list[list[Any]]:
    """[operator, count, the host's time, the device's time] of an average step, each without operators inside."""
    ordered = sorted(flame.operators.items(), key=lambda one: (-one[1].device_ns, -one[1].host_ns, one[0]))
    return [
        [name, round(one.count / steps, 2), max(one.host_ns, 0) // steps, one.device_ns // steps]
        for name, one in ordered[:_ROWS]
    ]


def communication_rows(rank: RankAnalysis) -> list[list[Any]]:
    """[name without numbers, group, count, time, moving data, waiting, hidden by computing] of an average step.

    Moving and waiting are null where the profile does not tell them apart.
    """
    steps = max(len(rank.splits), 1)
    timeline = rank.context.timeline
    inside = [(one.start_ns, one.end_ns) for one in rank.splits]
    table = rank.profile.communication.with_columns(pl.col("name", "kind", "group").cast(pl.String))
    operations = table.filter(pl.col("kind") == "operation").with_columns(
        pl.col("name").str.replace(r"_[\d_]+$", "").str.replace_all(r"\d{3,}", "#").alias("what")
    )
    told = bool(timeline.transmit or timeline.wait)
    rows = []
    for (what, group), some in operations.partition_by("what", "group", as_dict=True, maintain_order=True).items():
        spans = intersect(spans_of(some), inside)
        if not spans:
            continue
        starts = sorted(some["start_ns"].to_list())
        count = sum(bisect_left(starts, end) - bisect_left(starts, start) for start, end in inside)
        moving, waiting, hidden = (
            total(intersect(spans, one)) // steps for one in (timeline.transmit, timeline.wait, timeline.computing)
        )
        times = [moving if told else None, waiting if told else None]
        rows.append([what, group or "", round(count / steps, 2), total(spans) // steps, *times, hidden])
    return sorted(rows, key=lambda row: -row[3])[:_ROWS]


# --------------------------------------------------------------------------------------------------------- memory


def memory_curves(rank: RankAnalysis) -> list[dict[str, Any]]:
    """Memory over time by component and device: the most bytes allocated and reserved in each bin of time."""
    memory = rank.profile.memory
    if memory.is_empty():
        return []
    start, end = (getattr(memory["time_ns"], which)() for which in ("min", "max"))
    if start is None or end is None:
        return []
    width = (end - start) // _POINTS + 1
    bins = memory.with_columns(((pl.col("time_ns") - start) // width).alias("bin"), pl.col("component").cast(pl.String))
    curves = []
    for (component, device), table in bins.sort("time_ns").partition_by("component", "device", as_dict=True).items():
        most = table.group_by("bin").agg(pl.col("allocated_bytes", "reserved_bytes").max()).sort("bin")
        curves.append(
            {
                "component": component or "",
                "device": device,
                "length": end - start,
                "time": [place * width for place in most["bin"].to_list()],
                "allocated": most["allocated_bytes"].to_list(),
                "reserved": most["reserved_bytes"].to_list(),
                "peak": table["allocated_bytes"].max(),
                "peak_reserved": table["reserved_bytes"].max(),
            }
        )
    shown = [one for one in curves if one["peak"] or one["peak_reserved"]]
    return sorted(shown, key=lambda one: (not one["component"].startswith("PTA"), one["component"], one["device"] or 0))


def held_rows(rank: RankAnalysis) -> list[list[Any]]:
    """[bytes, pieces, operator, module, line] of what holds memory at its peak; the largest first."""
    held = rank.metrics.held if rank.metrics else ()
    return [[one.bytes, one.pieces, one.operator, one.module, one.line] for one in held[:_ROWS]]


# ------------------------------------------------------------------------------------------------------- evidence


def evidence(rank: RankAnalysis, finding: PerformanceFinding) -> list[list[Any]]:
    """[id, name, step, start in the step, duration] of the first events that a finding rests on."""
    table = getattr(rank.profile, finding.evidence_table, None)
    wanted = list(finding.events[:_EVIDENCE])
    if table is None or not wanted or "id" not in table.columns:
        return []
    found = table.filter(pl.col("id").is_in(wanted)).select(
        "id", pl.col("name").cast(pl.String).str.head(_LONGEST), "start_ns", "end_ns"
    )
    rows = []
    for number, name, start, end in sorted(found.iter_rows(), key=lambda row: wanted.index(row[0])):
        step = next((one for one in rank.splits if one.start_ns <= start < one.end_ns), None)
        at = None if step is None else start - step.start_ns
        rows.append([number, name, None if step is None else step.step, at, end - start])
    return rows
