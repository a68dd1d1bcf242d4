"""Collectives: waiting for other ranks, and moving data while nothing is computed."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from npuport.findings import say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, milliseconds
from npuport.performance.intervals import Spans, clip, total

_SHOWN = 20  # operations given as evidence


def waiting(context: Context) -> Iterator[PerformanceFinding]:
    """A collective begins when the last rank has come to it; until then the others wait."""
    free = context.without_computing(context.timeline.wait)
    wait = context.per_step(sum(one.wait for one in context.splits))
    transmit = context.per_step(sum(one.transmit for one in context.splits))
    if not wait:
        return
    yield PerformanceFinding(
        code="NT201",
        name="waiting-for-another-rank",
        seen=say(
            "collectives wait {wait} ms for another rank in a step, and move data for {transmit} ms",
            wait=milliseconds(wait),
            transmit=milliseconds(transmit),
        ),
        fix=say("profile every rank: the one that waits least is late, and its own findings say why"),
        check=say("the waiting of all ranks is alike and short"),
        cost_ns=wait,
        gain_ns=context.gain(free),
        confidence=Confidence.HIGH,
        spans=free,
        events=_longest(context, context.timeline.wait),
        evidence_table="communication",
        details={"wait_ms": wait / 1e6, "transmit_ms": transmit / 1e6},
    )


def not_overlapped(context: Context) -> Iterator[PerformanceFinding]:
    """Collectives that move data while the device computes nothing. Where moving is not told from waiting, both."""
    timeline = context.timeline
    moving = timeline.transmit if timeline.transmit or timeline.wait else timeline.operations
    free = context.without_computing(moving)
    if not free:
        return
    cost = context.per_step(total(context.in_steps(moving)))
    yield PerformanceFinding(
        code="NT202",
        name="communication-not-overlapped",
        seen=say(
            "collectives take {time} ms in a step, {bare} ms of it while nothing is computed",
            time=milliseconds(cost),
            bare=milliseconds(context.gain(free)),
        ),
        fix=say(
            "let the reduction run behind the backward: larger or smaller buckets (bucket_cap_mb), gradients as views"
        ),
        check=say("more of the communication is overlapped"),
        cost_ns=cost,
        gain_ns=context.gain(free),
        confidence=Confidence.MEDIUM,
        spans=free,
        events=_longest(context, free),
        evidence_table="communication",
    )


def _longest(context: Context, spans: Spans) -> tuple[int, ...]:
    """The operations with most of some spans, the one with most first."""
    table = context.profile.communication
    operations = table.filter(pl.col("kind").cast(pl.String) == "operation").select("id", "start_ns", "end_ns")
    shares = [(total(clip(spans, start, end)), number) for number, start, end in operations.iter_rows()]
    return tuple(number for share, number in sorted(shares, key=lambda one: (-one[0], one[1])) if share)[:_SHOWN]
