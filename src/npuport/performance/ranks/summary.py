"""What of one rank's profile a comparison with other ranks needs: small enough to keep for thousands of ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import polars as pl

from npuport.performance.findings.base import Context
from npuport.performance.intervals import clip, spans_of, total
from npuport.performance.reading.discover import Reader
from npuport.performance.tables import Problem, Profile

RECEIVING = r"(?i)recv|receive"


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective as one rank took part in it. ``wait_ns`` is None where the profile does not tell it."""

    duration_ns: int
    wait_ns: int | None


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes that moved between two ranks, over a kind of link, and the time that took."""

    bytes: int
    time_ns: int

    @property
    def rate(self) -> float:
        """GB/s."""
        return self.bytes / self.time_ns if self.time_ns else 0.0


@dataclass(frozen=True, slots=True)
class RankSummary:
    """Times are of an average step. Collectives are known by step, name and how often the name was met before."""

    path: Path
    rank: int
    steps: int
    step_ns: int
    parts: Mapping[str, int]  # by the words of ``Part``
    computing_ns: int
    communication_ns: int
    bubble_ns: int  # receiving from another pipeline stage while nothing is computed
    kernels: Mapping[str, tuple[int, int]]  # type -> (how many, time)
    collectives: Mapping[tuple[int | None, str, int], Collective]
    links: Mapping[tuple[int, int, str], Moved]  # (source, destination, kind of link)
    groups: tuple[tuple[str, tuple[int, ...]], ...]  # ("pp", (0, 4, 8, 12)), …
    peak_bytes: int | None
    problems: tuple[Problem, ...]


def summary_of(path: Path, read: Reader, position: int) -> RankSummary:
    """Read a profile and summarise it; a profile that does not say its rank gets ``position``."""
    return summarised(read(path), position)


def summarised(profile: Profile, position: int) -> RankSummary:
    """The summary of a profile."""
    context = Context(profile)
    splits = context.splits
    parts: dict[str, int] = {}
    for split in splits:
        for part, time in split.parts.items():
            parts[part.value] = parts.get(part.value, 0) + time
    count = max(len(splits), 1)
    return RankSummary(
        path=profile.path,
        rank=position if profile.rank is None else profile.rank,
        steps=len(splits),
        step_ns=context.step_ns,
        parts={name: time // count for name, time in parts.items()},
        computing_ns=sum(one.computing for one in splits) // count,
        communication_ns=sum(one.communication for one in splits) // count,
        bubble_ns=_bubble(context),
        kernels=_kernels(context, count),
        collectives=_collectives(context),
        links=_links(context, count),
        groups=profile.groups,
        peak_bytes=cast("int | None", profile.memory["reserved_bytes"].max()),
        problems=profile.problems,
    )


def _kernels(context: Context, steps: int) -> dict[str, tuple[int, int]]:
    named = pl.coalesce("type", "name").alias("type")
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time")
    table = context.kernels.group_by(named).agg(pl.len(), length)
    return {str(name): (number // steps, time // steps) for name, number, time in table.iter_rows()}


def _bubble(context: Context) -> int:
    """The vendor's tools call bubble what point-to-point operations that receive take; what hides it is no loss."""
    table = context.profile.communication.with_columns(pl.col("name", "kind").cast(pl.String))
    receiving = table.filter((pl.col("kind") == "operation") & pl.col("name").str.contains(RECEIVING))
    return context.per_step(total(context.without_computing(spans_of(receiving))))


def _collectives(context: Context) -> dict[tuple[int | None, str, int], Collective]:
    table = context.profile.communication.with_columns(pl.col("name", "kind").cast(pl.String)).sort("start_ns")
    operations = table.filter(pl.col("kind") == "operation")
    tells_wait = not table.filter(pl.col("kind") == "wait").is_empty()
    found: dict[tuple[int | None, str, int], Collective] = {}
    for split in context.splits:
        inside = operations.filter((pl.col("start_ns") >= split.start_ns) & (pl.col("start_ns") < split.end_ns))
        met: dict[str, int] = {}
        for name, start, end in inside.select("name", "start_ns", "end_ns").iter_rows():
            before = met.get(name, 0)
            met[name] = before + 1
            wait = total(clip(context.timeline.wait, start, end)) if tells_wait else None
            found[split.step, name, before] = Collective(end - start, wait)
    return found


def _links(context: Context, steps: int) -> dict[tuple[int, int, str], Moved]:
    """From the table that the profiler itself made, or else from the tasks of collectives."""
    table = context.profile.links
    if not table.is_empty():
        kind = pl.col("transport").cast(pl.String).alias("link")
        whole = table.filter(pl.col("selection").cast(pl.String).str.ends_with("-total"))
        moved = (whole if not whole.is_empty() else table).select("source", "destination", kind, "bytes", "time_ns")
    else:
        tasks = context.profile.communication.filter(pl.col("kind").cast(pl.String) == "transmit")
        kind = pl.coalesce(pl.col("transport", "link").cast(pl.String)).alias("link")
        time = (pl.col("end_ns") - pl.col("start_ns")).alias("time_ns")
        moved = tasks.select("source", "destination", kind, "bytes", time)
    between = moved.drop_nulls().filter((pl.col("source") != pl.col("destination")) & (pl.col("bytes") > 0))
    sums = between.group_by("source", "destination", "link").agg(pl.col("bytes").sum(), pl.col("time_ns").sum())
    return {
        (source, destination, link): Moved(size // steps, time // steps)
        for source, destination, link, size, time in sums.iter_rows()
    }
