"""A trace in Chrome's format for Perfetto: numbers for times, relative to the first, and lanes that nest.

Profilers of NPUs write absolute times as texts, which viewers read as floating-point numbers: half a microsecond is
lost, and kernels appear inside of others.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import polars as pl

from npuport.performance.exporting.nesting import lanes_of
from npuport.performance.step_split import Part, StepSplit
from npuport.performance.tables import Profile

HOST, DEVICE, COMMUNICATION, PARTS = 1, 2, 3, 4  # processes of the trace
_LANES = 1000  # lanes of a thread have numbers of their own


def write_trace(profile: Profile, splits: list[StepSplit], path: Path) -> None:
    """Write the trace, compressed, aside and then in place."""
    aside = path.with_name(f".new-{path.name}")
    with gzip.open(aside, "wt", encoding="utf-8", compresslevel=6) as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        for number, one in enumerate(_events(profile, splits)):
            file.write(",\n" if number else "")
            file.write(json.dumps(one, ensure_ascii=False))
        file.write("\n]}\n")
    aside.replace(path)


def _events(profile: Profile, splits: list[StepSplit]) -> Iterator[dict[str, Any]]:
    tables = (profile.events, profile.kernels, profile.communication)
    starts = [cast("int", table["start_ns"].min()) for table in tables if not table.is_empty()]
    begin = min([*starts, *(one.start_ns for one in splits)], default=0)
    names = {HOST: "host", DEVICE: profile.device.upper(), COMMUNICATION: "communication", PARTS: "parts of the step"}
    for pid, name in names.items():
        yield _named("process_name", pid, 0, name)
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": PARTS - pid}}
    yield from _parts(splits, begin)
    details = ["category", "stack", "shapes", "sequence"]
    yield from _spans(profile.events, "thread", HOST, begin, details)
    yield from _spans(profile.kernels, "stream", DEVICE, begin, ["type", "core", "shapes", "dtypes", "bytes"])
    lane = pl.coalesce(pl.col("plane") + 1, pl.lit(0)).alias("lane")
    details = ["group", "bytes", "link", "transport", "source", "destination"]
    yield from _spans(profile.communication.with_columns(lane), "lane", COMMUNICATION, begin, details)
    yield from _launches(profile.kernels, begin)


def _parts(splits: list[StepSplit], begin: int) -> Iterator[dict[str, Any]]:
    yield _named("thread_name", PARTS, 0, "parts")
    for split in splits:
        for part in Part:
            for start, end in split.spans.get(part, []):
                yield _span(part.value, PARTS, 0, start - begin, end - start, {"step": split.step})


def _spans(frame: pl.DataFrame, lane: str, pid: int, begin: int, details: list[str]) -> Iterator[dict[str, Any]]:
    texts = [name for name, kind in frame.schema.items() if kind == pl.Categorical]
    ordered = frame.with_columns(pl.col(texts).cast(pl.String)).with_columns(pl.col(lane).fill_null(0))
    for (number,), rows in ordered.sort("start_ns", "end_ns", descending=[False, True]).group_by(
        lane, maintain_order=True
    ):
        placed = lanes_of(list(zip(rows["start_ns"], rows["end_ns"], strict=True)))
        for extra in sorted({place for place, _ in placed}):
            name = f"{lane} {number}" + (f" ({extra + 1})" if extra else "")
            yield _named("thread_name", pid, _lane(number, extra), name)
        for row, (extra, end) in zip(rows.iter_rows(named=True), placed, strict=True):
            told = {name: row[name] for name in details if row[name] is not None}
            start = row["start_ns"]
            yield _span(row["name"] or "", pid, _lane(number, extra), start - begin, end - start, told)


def _launches(kernels: pl.DataFrame, begin: int) -> Iterator[dict[str, Any]]:
    """Arrows from what launched kernels to the kernels."""
    launched = kernels.select("id", "stream", "start_ns", "launch_thread", "launch_ns").drop_nulls(
        ["launch_thread", "launch_ns"]
    )
    for number, stream, start, thread, at in launched.iter_rows():
        common = {"cat": "launch", "name": "launch", "id": number}
        yield {**common, "ph": "s", "pid": HOST, "tid": _lane(thread, 0), "ts": _microseconds(at - begin)}
        yield {
            **common, "ph": "f", "bp": "e", "pid": DEVICE, "tid": _lane(stream or 0, 0),
            "ts": _microseconds(start - begin),
        }  # fmt: skip


def _lane(number: int, extra: int) -> int:
    return number * _LANES + extra


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _span(name: str, pid: int, tid: int, start: int, length: int, told: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X", "name": name, "pid": pid, "tid": tid, "ts": _microseconds(start), "dur": _microseconds(length),
        "args": told,
    }  # fmt: skip


def _microseconds(time: int) -> float:
    """Exact for what a profile lasts: 2**53 ns are 104 days."""
    return time / 1000
