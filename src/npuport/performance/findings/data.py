"""Waiting for the next batch."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from npuport.findings import Sentence, say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, milliseconds
from npuport.performance.intervals import total
from npuport.performance.phases import Phase


def slow_loading(context: Context) -> Iterator[PerformanceFinding]:
    """The training loop waits for its DataLoader."""
    spans = context.in_steps(context.timeline.phases.spans[Phase.DATA])
    if not spans:
        return
    cost, free = context.gain(spans), context.without_computing(spans)
    calls = context.events.filter(pl.col("name").str.contains("(?i)dataloader") & (pl.col("category") != "python"))
    longest = calls.sort(pl.col("end_ns") - pl.col("start_ns"), descending=True).head(1)
    lines = context.lines(longest.row(0, named=True)) if longest.height else []
    yield PerformanceFinding(
        code="NT301",
        name="waiting-for-data",
        seen=say(
            "the training loop waits {time} ms in a step for its DataLoader ({idle} ms of it with an idle device)",
            time=milliseconds(cost),
            idle=milliseconds(context.per_step(total(free))),
        ),
        fix=_fix(longest["name"][0] if longest.height else ""),
        check=say("the part of data loading in the step is near zero"),
        cost_ns=cost,
        gain_ns=context.gain(free),
        confidence=Confidence.HIGH,
        spans=free,
        line=lines[0] if lines else "",
        events=tuple(calls["id"].to_list()),
    )


def _fix(name: str) -> Sentence:
    if "SingleProcess" in name:
        return say("give the DataLoader num_workers: it loads in the training process, while nothing is computed")
    return say("more workers, persistent_workers=True, a larger prefetch_factor, or cheaper transforms in the workers")
