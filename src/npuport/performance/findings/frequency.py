"""Kernels that run while the chip has lowered its clock."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from npuport.facts import performance_fact
from npuport.findings import say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, milliseconds
from npuport.performance.intervals import spans_of, total

_DROP = 0.05  # of the highest clock, on average over the time of kernels; see the fact "frequency-drop"
_ELSEWHERE = ("AI_CPU",)  # kernels that the clock of the AI cores does not concern


def lowered_clock(context: Context) -> Iterator[PerformanceFinding]:
    """What kernels bound by computing would save at the highest clock that the profile itself shows.

    A clock that is low all the time is not seen.
    """
    clock = context.profile.frequencies
    if clock["mhz"].n_unique() < 2:
        return
    kernels = context.kernels.filter(~pl.col("core").is_in(_ELSEWHERE).fill_null(value=False))
    kernels = kernels.join_asof(clock, left_on="start_ns", right_on="time_ns").drop_nulls("mhz")
    highest = max(clock["mhz"].to_list())
    length = pl.col("end_ns") - pl.col("start_ns")
    saved = int(kernels.select((length * (highest - pl.col("mhz")) / highest).sum()).item() or 0)
    slow = kernels.filter(pl.col("mhz") < highest)
    spans = context.in_steps(spans_of(slow))
    time = int(kernels.select(length.sum()).item() or 0)
    if not spans or saved < _DROP * time:
        return
    saved = min(saved, total(spans))  # kernels side by side save their time once
    yield PerformanceFinding(
        code="NT505",
        name="clock-of-the-cores-lowered",
        seen=say(
            "kernels run {time} ms in a step while the AI cores are at {lowest} MHz instead of {highest} MHz",
            time=milliseconds(context.per_step(total(spans))),
            lowest=min(slow["mhz"].to_list()),
            highest=highest,
        ),
        fix=say("look at temperature and power of the chip (npu-smi info), cooling, and power limits of the machine"),
        check=say("the clock stays at its highest while kernels run"),
        cost_ns=context.per_step(saved),
        gain_ns=context.per_step(saved),
        confidence=Confidence.MEDIUM,
        spans=spans,
        events=tuple(slow["id"].to_list()),
        evidence_table="kernels",
        basis=performance_fact("frequency-drop").basis,
    )
