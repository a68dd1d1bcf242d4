"""What the host does while the device has nothing to do."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from npuport.facts import performance_fact
from npuport.findings import Sentence, say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, in_milliseconds, milliseconds
from npuport.performance.findings.lines import user_frames
from npuport.performance.intervals import Spans, total
from npuport.performance.step_split import Part
from npuport.performance.tables import Category

_SHOWN = 20  # kernels given as evidence
_LOOKED_AT = 2_000  # longest gaps whose function is looked up


def dispatching(context: Context) -> Iterator[PerformanceFinding]:
    """The device waits because the host cannot launch as fast as the device computes."""
    spans = context.part(Part.DISPATCH)
    if not spans:
        return
    cost = context.gain(spans)
    kernels = context.kernels.height / len(context.splits)
    on_npu = context.profile.device == "npu"
    yield PerformanceFinding(
        code="NT103",
        name="device-waits-for-dispatch",
        seen=say(
            "the device waits {time} ms in a step for the host to launch operators ({kernels} kernels in a step)",
            time=milliseconds(cost),
            kernels=f"{kernels:,.0f}",
        ),
        fix=_fewer_launches(on_npu),
        check=say("the part of dispatching in the step is smaller"),
        cost_ns=cost,
        gain_ns=cost,
        confidence=Confidence.MEDIUM,
        spans=spans,
        events=_after_the_longest(context, spans),
        evidence_table="kernels",
        details={"kernels": kernels},
        basis=performance_fact("task-queue").basis if on_npu else None,
    )


def _after_the_longest(context: Context, spans: Spans) -> tuple[int, ...]:
    """The kernels that the device waited for longest."""
    begun = dict(context.kernels.select("start_ns", "id").iter_rows())
    longest = sorted(spans, key=lambda span: span[0] - span[1])
    return tuple(begun[end] for _, end in longest if end in begun)[:_SHOWN]


def _fewer_launches(on_npu: bool) -> Sentence:
    if on_npu:
        return say("launch less: fused operators, a larger batch; set TASK_QUEUE_ENABLE=2 and CPU_AFFINITY_CONF=2")
    return say("launch less: torch.compile, fused operators, a larger batch")


def before_the_first_kernel(context: Context) -> Iterator[PerformanceFinding]:
    """At the start of a step nothing is launched while the host prepares it."""
    spans = context.part(Part.PREPARING)
    if not spans:
        return
    cost = context.gain(spans)
    yield PerformanceFinding(
        code="NT302",
        name="nothing-launched-at-the-start",
        seen=say("the device waits {time} ms in a step for its first kernel", time=milliseconds(cost)),
        fix=say(
            "prepare the next batch while this one trains: in the DataLoader's workers, copied on a stream of its own"
        ),
        check=say("the first kernel of a step starts with it"),
        cost_ns=cost,
        gain_ns=cost,
        confidence=Confidence.MEDIUM,
        spans=spans,
    )


def outside_operators(context: Context) -> Iterator[PerformanceFinding]:
    """The device is idle while the host is in Python code between operators."""
    spans = context.part(Part.GAP)
    if not spans or context.timeline.host_only:
        return
    cost = context.gain(spans)
    functions = _functions(context, spans)
    yield PerformanceFinding(
        code="NT105",
        name="device-waits-for-python",
        seen=say("the device waits {time} ms in a step while the host is outside operators", time=milliseconds(cost)),
        fix=say("move what the loop does between operators (logging, metrics, checkpoints) out of most steps"),
        check=say("the part outside operators in the step is smaller"),
        cost_ns=cost,
        gain_ns=cost,
        confidence=Confidence.MEDIUM,
        spans=spans,
        line=next(iter(functions), ""),
        details={"functions_ms": in_milliseconds(functions)},
    )


def _functions(context: Context, spans: Spans) -> dict[str, int]:
    """The user's functions in which the longest gaps lie and their time in an average step, the longest first."""
    frames = context.events.filter(pl.col("category") == Category.PYTHON)
    by_step = frames.partition_by("step", as_dict=True)
    times: dict[str, int] = {}
    for start, end in sorted(spans, key=lambda span: span[0] - span[1])[:_LOOKED_AT]:
        step = next((one.step for one in context.splits if one.start_ns <= start < one.end_ns), None)
        beside = by_step.get((step,))
        if beside is None:
            continue
        middle = (start + end) // 2
        around = beside.filter((pl.col("start_ns") <= middle) & (pl.col("end_ns") > middle))
        names = around.sort("start_ns", descending=True)["name"].to_list()
        if found := [frame for name in names for frame in user_frames(name)]:
            times[found[0]] = times.get(found[0], 0) + context.per_step(end - start)
    return dict(sorted(times.items(), key=lambda one: -one[1]))


def collector(context: Context) -> Iterator[PerformanceFinding]:
    """Python's garbage collector stops the training loop."""
    calls = context.events.filter(pl.col("category") == Category.COLLECTOR)
    if calls.is_empty():
        return
    spans = list(calls.select("start_ns", "end_ns").iter_rows())
    cost, free = context.per_step(total(spans)), context.without_computing(spans)
    yield PerformanceFinding(
        code="NT104",
        name="garbage-collection-in-the-step",
        seen=say(
            "Python's garbage collector runs {count} x in a step, {time} ms",
            count=f"{calls.height / len(context.splits):,.3g}",
            time=milliseconds(cost),
        ),
        fix=say("call gc.freeze() once the model is built, and collect by hand every few hundred steps"),
        check=say("no collection lies in a step of the next profile"),
        cost_ns=cost,
        gain_ns=context.gain(free),
        confidence=Confidence.HIGH,
        spans=free,
        events=tuple(calls["id"].to_list()),
    )


def launch_blocking(context: Context) -> Iterator[PerformanceFinding]:
    """A variable for debugging makes every launch wait."""
    if context.profile.environment.get("ASCEND_LAUNCH_BLOCKING") != "1":
        return
    spans = context.part(Part.SYNCHRONISATION)
    cost = context.gain(spans)
    yield PerformanceFinding(
        code="NT106",
        name="every-launch-blocks",
        seen=say(
            "ASCEND_LAUNCH_BLOCKING=1: the host waits after every launch, {time} ms in a step", time=milliseconds(cost)
        ),
        fix=say("unset ASCEND_LAUNCH_BLOCKING; it is for finding the operator that fails"),
        check=say("the part blocked on synchronisations is gone"),
        cost_ns=cost,
        gain_ns=cost,
        confidence=Confidence.HIGH,
        spans=spans,
        basis=performance_fact("launch-blocking").basis,
    )
