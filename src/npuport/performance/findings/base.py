"""A performance finding, and what the checks that make findings may ask about a profile."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from npuport.findings import Basis, Sentence
from npuport.performance.findings.lines import lines_of
from npuport.performance.intervals import Spans, clip, subtract, total, union
from npuport.performance.step_split import Part, StepSplit, Timeline, split_steps, timeline_of, with_phase
from npuport.performance.tables import Profile


class Confidence(enum.Enum):
    """How sure it is that the cause is the one named."""

    HIGH = "high"  # the profile shows it
    MEDIUM = "medium"  # the profile fits it; something else might look the same
    LOW = "low"  # worth a try


@dataclass(frozen=True, slots=True)
class PerformanceFinding:
    """One thing that costs time.

    ``cost_ns`` is its time in an average step; ``gain_ns``, at most that, is what a step could become shorter by if it
    were gone and everything else stayed: time in which the device computes something else is no gain. ``spans`` are
    where ``gain_ns`` comes from, so that findings which explain the same time are seen to overlap; their gains must not
    be added up.
    ``events`` are rows of the table ``evidence_table`` of the profile, ``details`` further numbers.
    """

    code: str  # such as "NT101"
    name: str  # kebab-case; states the bad pattern
    seen: Sentence
    fix: Sentence
    check: Sentence  # what shows, in the next profile, that it is gone
    cost_ns: int
    gain_ns: int
    confidence: Confidence
    spans: Spans
    line: str = ""  # "path:line" of the code that causes it
    events: tuple[int, ...] = ()
    evidence_table: str = "events"
    details: Mapping[str, Any] = field(default_factory=dict)
    basis: Basis | None = None  # what the fix rests on, where that is a fact about NPUs
    saved_bytes: int = 0  # device memory that it costs, where that is what it costs


@dataclass(frozen=True)
class Context:
    """One rank's profile and what is derived from it once for all checks."""

    profile: Profile

    @cached_property
    def timeline(self) -> Timeline:
        """Spans of the whole profile."""
        return timeline_of(self.profile)

    @cached_property
    def splits(self) -> list[StepSplit]:
        """Each step, divided."""
        return split_steps(self.profile, self.timeline)

    @cached_property
    def events(self) -> pl.DataFrame:
        """The host events that begin in a step, by start, with ``step``; names and categories are plain texts."""
        plain = self.profile.events.with_columns(pl.col("name", "category").cast(pl.String)).sort("start_ns")
        steps = self.profile.steps.select("step", "start_ns", pl.col("end_ns").alias("step_end")).sort("start_ns")
        inside = plain.join_asof(steps, on="start_ns").filter(pl.col("start_ns") < pl.col("step_end"))
        return inside.drop("step_end")

    @cached_property
    def _by_thread(self) -> dict[tuple[Any, ...], pl.DataFrame]:
        return self.events.partition_by("thread", "step", as_dict=True)

    def around(self, row: Mapping[str, Any]) -> pl.DataFrame:
        """The events of its step and thread that enclose one of ``events``, itself with them, innermost first."""
        beside = self._by_thread[row["thread"], row["step"]]
        enclosing = (pl.col("start_ns") <= row["start_ns"]) & (pl.col("end_ns") >= row["end_ns"])
        return beside.filter(enclosing).sort("start_ns", "end_ns", descending=[True, False])

    def lines(self, row: Mapping[str, Any]) -> list[str]:
        """``path:line`` of the user's code that one of ``events`` comes from, innermost first.

        Autograd's threads have no Python stack: a backward operator has the lines of its forward.
        """
        around = self.around(row)
        if found := lines_of(around):
            return found
        forward = (self.forward_operators.get(number) for number in around["sequence"].drop_nulls().to_list())
        return next((lines_of(self.around(one)) for one in forward if one is not None), [])

    @cached_property
    def forward_operators(self) -> dict[int, dict[str, Any]]:
        """The operator that made each node of autograd's graph, by the number that its backward carries too."""
        numbered = self.events.filter(
            (pl.col("sequence") >= 0)
            & (pl.col("forward_thread").fill_null(0) == 0)
            & ~pl.col("thread").is_in(list(self.timeline.phases.backward_threads))
        )
        made = numbered.unique("sequence", keep="last", maintain_order=True)
        return {row["sequence"]: row for row in made.iter_rows(named=True)}

    def lines_of_kernels(self, kernels: pl.DataFrame) -> dict[str, int]:
        """The lines that launched some of ``kernels``, with the time of those in all steps; the longest first."""
        length = pl.col("end_ns") - pl.col("start_ns")
        longest = kernels.select("launch_thread", "launch_ns", length.alias("time")).drop_nulls()
        longest = longest.sort("time", descending=True).head(_LOOKED_UP)
        launches = self.events.unique(["thread", "start_ns"], keep="first", maintain_order=True)
        joined = longest.join(launches, left_on=["launch_thread", "launch_ns"], right_on=["thread", "start_ns"])
        times: dict[str, int] = {}
        for row in joined.iter_rows(named=True):
            found = self.lines({**row, "thread": row["launch_thread"], "start_ns": row["launch_ns"]})
            if found:
                times[found[0]] = times.get(found[0], 0) + row["time"]
        return dict(sorted(times.items(), key=lambda one: -one[1]))

    @cached_property
    def kernels(self) -> pl.DataFrame:
        """What the device did that begins in a step: kernels alone, with ``phase`` and with texts as plain texts."""
        texts = [name for name, kind in self.profile.kernels.schema.items() if kind == pl.Categorical]
        only = self.profile.kernels.with_columns(pl.col(texts).cast(pl.String)).filter(pl.col("kind") == "kernel")
        phased = with_phase(only, self.timeline.phases, self.profile.steps).sort("start_ns")
        steps = self.profile.steps.select("step", "start_ns", pl.col("end_ns").alias("step_end")).sort("start_ns")
        return phased.join_asof(steps, on="start_ns").filter(pl.col("start_ns") < pl.col("step_end")).drop("step_end")

    def part(self, part: Part) -> Spans:
        """The time of a part in all steps."""
        return union(span for one in self.splits for span in one.spans.get(part, []))

    @property
    def _steps(self) -> Spans:
        return [(one.start_ns, one.end_ns) for one in self.splits]

    @cached_property
    def step_ns(self) -> int:
        """Length of an average step."""
        return sum(one.duration for one in self.splits) // max(len(self.splits), 1)

    def per_step(self, time: int) -> int:
        """A time of all steps together as that of an average one."""
        return time // max(len(self.splits), 1)

    def in_steps(self, spans: Iterable[tuple[int, int]]) -> Spans:
        """The time of spans that lies in steps."""
        covered = union(spans)
        return [span for start, end in self._steps for span in clip(covered, start, end)]

    def without_computing(self, spans: Iterable[tuple[int, int]]) -> Spans:
        """The time of spans that lies in steps and in which the device computes nothing."""
        return subtract(self.in_steps(spans), self.timeline.computing)

    def gain(self, spans: Spans) -> int:
        """What removing all of ``spans`` (free of computing) could save an average step."""
        return self.per_step(total(spans))


_LOOKED_UP = 500  # longest kernels whose line is looked up

Check = Callable[[Context], Iterator[PerformanceFinding]]


def milliseconds(time: int) -> str:
    """``91.96``: a time in ms as findings write it."""
    return f"{time / 1e6:,.2f}"


def in_milliseconds(times: Mapping[str, int]) -> dict[str, float]:
    """Times by name, as details of findings hold them."""
    return {name: time / 1e6 for name, time in times.items()}
