"""Device memory that is allocated and freed while the model trains."""

from __future__ import annotations

from collections.abc import Iterator

from npuport.facts import performance_fact
from npuport.findings import Sentence, say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, milliseconds
from npuport.performance.intervals import total
from npuport.performance.step_split import allocating


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


def _fix(on_npu: bool) -> Sentence:
    if on_npu:
        return say("set PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, and take empty_cache() out of the loop")
    return say("set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and take empty_cache() out of the loop")
