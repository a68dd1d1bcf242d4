"""Device memory: allocated and freed while the model trains, or reserved and in no tensor."""

from __future__ import annotations

from collections.abc import Iterator

from npuport.facts import performance_fact
from npuport.findings import Sentence, say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, milliseconds
from npuport.performance.intervals import total
from npuport.performance.memory_use import memory_peak
from npuport.performance.step_split import allocating

_UNUSED_BYTES = 2**30  # see the fact "fragmentation"
_UNUSED_SHARE = 0.1  # of what is reserved: on large devices a little is always kept for later


def allocations(context: Context) -> Iterator[PerformanceFinding]:
    """The allocator keeps what it has; calls to the driver in every step mean that it gave memory back or split it."""
    calls = context.events.filter(allocating())
    if calls.is_empty():
        return
    spans = list(calls.select("start_ns", "end_ns").iter_rows())
    cost, free = context.per_step(total(spans)), context.without_computing(spans)
    on_npu = context.profile.device == "npu"
    yield PerformanceFinding(
        code="NT401",
        name="device-memory-allocated-in-the-step",
        seen=say(
            "device memory is allocated or freed {count} x in a step, {time} ms",
            count=f"{calls.height / len(context.splits):,.3g}",
            time=milliseconds(cost),
        ),
        fix=_fix(on_npu),
        check=say("steps after the first few call neither allocation nor freeing"),
        cost_ns=cost,
        gain_ns=context.gain(free),
        confidence=Confidence.HIGH,
        spans=free,
        events=tuple(calls["id"].to_list()),
        details={"calls": dict(calls.group_by("name").len().sort("len", "name", descending=[True, False]).iter_rows())},
        basis=performance_fact("expandable-segments").basis if on_npu else None,
    )


def fragmentation(context: Context) -> Iterator[PerformanceFinding]:
    """At its peak the allocator holds much that is in no tensor: it costs no time, but a larger batch."""
    peak = memory_peak(context.profile)
    if peak is None or peak.reserved is None or peak.unused is None:
        return
    if peak.unused <= _UNUSED_BYTES or peak.unused < _UNUSED_SHARE * peak.reserved:
        return
    yield PerformanceFinding(
        code="NT402",
        name="fragmented-memory",
        seen=say(
            "at the peak {unused} GB of {reserved} GB reserved memory are in no tensor",
            unused=f"{peak.unused / 1e9:,.2f}",
            reserved=f"{peak.reserved / 1e9:,.2f}",
        ),
        fix=_fix(context.profile.device == "npu"),
        check=say("at the peak less than 1 GB of the reserved memory is unused"),
        cost_ns=0,
        gain_ns=0,
        confidence=Confidence.MEDIUM,
        spans=[],
        details={"allocated_bytes": peak.allocated, "reserved_bytes": peak.reserved, "time_ns": peak.time_ns},
        basis=performance_fact("fragmentation").basis,
        saved_bytes=peak.unused,
    )


def _fix(on_npu: bool) -> Sentence:
    if on_npu:
        return say("set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, and take empty_cache() out of the loop")
    return say("set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and take empty_cache() out of the loop")
