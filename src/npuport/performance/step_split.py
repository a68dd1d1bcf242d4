"""Dividing a step into parts that add up to it exactly.

A step is a span of time on the clock of its profile. Each instant gets one part, the first of these that holds:

1. the device computes or copies: the phase (forward, backward, …) whose code launched that;
2. a collective runs: it moves data, or waits for another rank;
3. the device is idle: what the host was doing then says why.

Where no device was profiled, the host's own phases are the parts.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from npuport.performance.intervals import Spans, clip, intersect, spans_of, subtract, total, union
from npuport.performance.phases import Phase, Phases, phases_of
from npuport.performance.tables import Category, Profile


class Part(enum.Enum):
    """A part of a step. The values are what reports call it: communication and idleness are groups of several."""

    DATA = "data loading"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    OTHER = "post-processing"
    TRANSMIT = "moving data"
    WAIT = "waiting for other ranks"
    COMMUNICATION = "communication"  # where the profile does not tell moving from waiting
    COLLECTOR = "collecting garbage"
    COMPILE = "compiling operators"
    ALLOCATOR = "allocating device memory"
    SYNCHRONISATION = "host blocked on a synchronisation"
    PREPARING = "before the first kernel"
    DISPATCH = "host dispatching operators"
    GAP = "host outside operators"
    UNKNOWN = "the host was not recorded"


COMMUNICATING = (Part.TRANSMIT, Part.WAIT, Part.COMMUNICATION)
IDLE = (
    Part.COLLECTOR,
    Part.COMPILE,
    Part.ALLOCATOR,
    Part.SYNCHRONISATION,
    Part.PREPARING,
    Part.DISPATCH,
    Part.GAP,
    Part.UNKNOWN,
)

_PHASE_PART = {
    Phase.DATA: Part.DATA,
    Phase.FORWARD: Part.FORWARD,
    Phase.BACKWARD: Part.BACKWARD,
    Phase.OPTIMIZER: Part.OPTIMIZER,
    Phase.OTHER: Part.OTHER,
}
# Where kernels of several phases run at once, the first of these has the time.
_ORDER = (Phase.BACKWARD, Phase.FORWARD, Phase.OPTIMIZER, Phase.DATA, Phase.OTHER)

_COMPILING = r"^aclopCompile|^aclGenGraphAndDump|^cuModuleLoad|^cuLibraryLoad|^hipModuleLoad"
# Memory of the device; memory of the host (aclrtMallocHost, cudaMallocHost) is another matter.
_ALLOCATING = (
    r"^aclrt(Malloc|Free)(Align32|Cached|Physical|WithCfg)?$|^aclMallocMemInner|^aclrt(Reserve|Release|Map|Unmap)Mem"
    r"|^(cuda|hip)(Malloc|Free)(Async|Managed)?$"
)
_BLOCKING_CALLS = (
    r"^aclrtSynchronize|^(cuda|hip)(Stream|Device|Event)Synchronize|^(cuda|hip)Memcpy(2D|3D|WithStream)?$|^aclrtMemcpy$"
)
# Operators that hand a value of a tensor to Python: with a device, they wait for it.
BLOCKING_OPERATORS = r"^aten::(item|_local_scalar_dense|is_nonzero|nonzero|equal|_unique2|masked_select)$"


@dataclass(frozen=True, slots=True)
class StepSplit:
    """One step and its parts, in nanoseconds. ``parts`` adds up to ``end_ns - start_ns``.

    ``computing`` is the time in which any kernel ran, ``communication`` that in which any collective did, and
    ``overlapped`` that of both; ``transmit`` and ``wait`` divide the communication where the profile tells them apart.
    """

    step: int | None
    start_ns: int
    end_ns: int
    spans: Mapping[Part, Spans]
    computing: int
    communication: int
    overlapped: int
    transmit: int
    wait: int

    @property
    def duration(self) -> int:
        """Length of the step."""
        return self.end_ns - self.start_ns

    @property
    def parts(self) -> dict[Part, int]:
        """Time of each part that has any."""
        return {part: time for part in Part if (time := total(self.spans.get(part, [])))}


@dataclass(frozen=True, slots=True)
class Timeline:
    """The time a whole profile spends on each thing, before it is cut into steps. A list of spans for each."""

    computing: Spans  # kernels
    busy: Mapping[Phase, Spans]  # kernels and copies, by the phase that launched them; disjoint
    operations: Spans  # collectives
    transmit: Spans
    wait: Spans  # collectives that wait, where the profile tells
    blocking: pl.Series  # ids of events in which the host waits for the device
    reasons: Mapping[Part, Spans]  # what the host does; in the order in which one explains idleness
    phases: Phases
    host_only: bool  # no device was profiled
    host_recorded: bool  # else nothing is known of why the device is idle


def timeline_of(profile: Profile) -> Timeline:
    """The spans that all steps of a profile are cut from."""
    phases = phases_of(profile)
    training = _training_threads(profile, phases)
    kind = profile.communication["kind"].cast(pl.String)
    operations = spans_of(profile.communication.filter(kind == "operation"))
    transmit = intersect(spans_of(profile.communication.filter(kind == "transmit")), operations)
    blocking = _blocking(profile, training)
    host = profile.events["category"].cast(pl.String).is_in([Category.OPERATOR, Category.PYTHON])
    return Timeline(
        computing=spans_of(profile.kernels.filter(pl.col("kind").cast(pl.String) == "kernel")),
        busy=_busy(profile, phases),
        operations=operations,
        transmit=transmit,
        wait=subtract(_told(profile.communication), transmit),
        blocking=blocking,
        reasons=_reasons(profile, phases, training, blocking),
        phases=phases,
        host_only=profile.kernels.is_empty() and not operations,
        host_recorded=bool(host.any()),
    )


def _told(communication: pl.DataFrame) -> Spans:
    """The time of the collectives whose tasks were recorded: what of it moves no data is waiting."""
    kind = communication["kind"].cast(pl.String)
    tasks = spans_of(communication.filter(kind != "operation"))
    operations = communication.filter(kind == "operation").select("start_ns", "end_ns")
    return union((start, end) for start, end in operations.iter_rows() if clip(tasks, start, end))


def split_steps(profile: Profile, timeline: Timeline) -> list[StepSplit]:
    """Each step of a profile, divided."""
    return [
        _split(timeline, step, start, end)
        for step, start, end in profile.steps.select("step", "start_ns", "end_ns").iter_rows()
    ]


def _split(timeline: Timeline, step: int | None, start: int, end: int) -> StepSplit:
    computing = clip(timeline.computing, start, end)
    operations = clip(timeline.operations, start, end)
    layers = _host_layers(timeline) if timeline.host_only else _device_layers(timeline, computing, start, end)
    rest: Spans = [(start, end)] if end > start else []
    spans: dict[Part, Spans] = {}
    for part, layer in layers:
        spans[part] = union([*spans.get(part, []), *intersect(clip(layer, start, end), rest)])
        rest = subtract(rest, layer)
    spans[Part.GAP if timeline.host_recorded else Part.UNKNOWN] = rest
    return StepSplit(
        step=step,
        start_ns=start,
        end_ns=end,
        spans={part: found for part, found in spans.items() if found},
        computing=total(computing),
        communication=total(operations),
        overlapped=total(intersect(computing, operations)),
        transmit=total(clip(timeline.transmit, start, end)),
        wait=total(clip(timeline.wait, start, end)),
    )


def _device_layers(timeline: Timeline, computing: Spans, start: int, end: int) -> list[tuple[Part, Spans]]:
    first = computing[0][0] if computing else end
    reasons = [(part, spans) for part, spans in timeline.reasons.items() if part is not Part.DISPATCH]
    return [
        *((_PHASE_PART[phase], timeline.busy[phase]) for phase in _ORDER),
        (Part.TRANSMIT, timeline.transmit),
        (Part.WAIT, timeline.wait),
        (Part.COMMUNICATION, timeline.operations),
        *reasons,
        (Part.PREPARING, [(start, first)]),
        (Part.DISPATCH, timeline.reasons[Part.DISPATCH]),
    ]


def _host_layers(timeline: Timeline) -> list[tuple[Part, Spans]]:
    phases = timeline.phases.spans
    return [
        (Part.COLLECTOR, timeline.reasons[Part.COLLECTOR]),
        *((_PHASE_PART[phase], phases[phase]) for phase in _ORDER if phase in phases),
        (Part.OTHER, timeline.reasons[Part.DISPATCH]),
    ]


def _busy(profile: Profile, phases: Phases) -> dict[Phase, Spans]:
    """The device's time by the phase whose code launched it."""
    launched = with_phase(profile.kernels, phases, profile.steps)
    left: Spans = []
    result = {}
    for phase in _ORDER:
        spans = spans_of(launched.filter(pl.col("phase") == phase.value))
        result[phase] = subtract(spans, left)
        left = union([*left, *spans])
    return result


def with_phase(kernels: pl.DataFrame, phases: Phases, steps: pl.DataFrame) -> pl.DataFrame:
    """Kernels with the phase that launched them, in a column ``phase``; sorted by stream and start.

    A kernel whose launch was not recorded belongs to the phase of the one before it on its stream.
    """
    rows = [(start, end, phase.value) for phase, spans in phases.spans.items() for start, end in spans]
    schema = {"phase_start": pl.Int64, "phase_end": pl.Int64, "phase": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row").sort("phase_start")
    forward = [start for start, _ in phases.spans[Phase.FORWARD]]
    in_phase = pl.col("launch_ns") < pl.col("phase_end")
    known = kernels.filter(pl.col("launch_ns").is_not_null()).sort("launch_ns")
    known = known.join_asof(table, left_on="launch_ns", right_on="phase_start")
    known = known.join_asof(
        steps.select(pl.col("start_ns").alias("step_start")), left_on="launch_ns", right_on="step_start"
    ).join_asof(
        pl.DataFrame({"forward_start": forward}, schema={"forward_start": pl.Int64}).sort("forward_start"),
        left_on="launch_ns",
        right_on="forward_start",
    )
    # Between the start of a step and its forward, the batch is moved to the device.
    before_forward = pl.col("step_start").is_not_null() & (
        pl.col("forward_start").is_null() | (pl.col("forward_start") < pl.col("step_start"))
    )
    phase = (
        pl.when(pl.col("launch_thread").is_in(list(phases.backward_threads)))
        .then(pl.lit(Phase.BACKWARD.value))
        .when(in_phase)
        .then(pl.col("phase"))
        .when(before_forward & pl.lit(bool(forward)))
        .then(pl.lit(Phase.DATA.value))
        .otherwise(pl.lit(Phase.OTHER.value))
    )
    named = known.select("id", phase.alias("phase"))
    return (
        kernels.join(named, on="id", how="left")
        .sort("stream", "start_ns", maintain_order=True)
        .with_columns(pl.col("phase").forward_fill().over("stream").fill_null(Phase.OTHER.value))
    )


def _training_threads(profile: Profile, phases: Phases) -> pl.Expr:
    """Which events are of the threads that launch what the device does: not those of loaders and watchdogs."""
    loops = profile.steps["thread"].drop_nulls()
    if loops.is_empty():
        return pl.lit(value=True)
    category = profile.events["category"].cast(pl.String)
    queue = profile.events.filter(category == Category.DEQUEUE)["thread"].drop_nulls()
    threads = {*loops.to_list(), *queue.unique().to_list(), *phases.backward_threads}
    return pl.col("thread").is_in(list(threads))


def _blocking(profile: Profile, training: pl.Expr) -> pl.Series:
    """The ids of events in which the host waits for the device.

    These are calls that block, and copies from or to pageable memory, which block whatever they are called; where no
    calls were recorded, operators that hand a value to Python.
    """
    name, category = pl.col("name").cast(pl.String), pl.col("category").cast(pl.String)
    events = profile.events.filter(training)
    calls = events.filter(category == Category.RUNTIME)
    if calls.is_empty():
        return events.filter((category == Category.OPERATOR) & name.str.contains(BLOCKING_OPERATORS))["id"]
    pageable = profile.kernels.filter(name.str.contains("Pageable")).select("launch_thread", "launch_ns")
    copying = calls.filter(name.str.contains("Memcpy")).join(
        pageable, left_on=["thread", "start_ns"], right_on=["launch_thread", "launch_ns"], how="semi"
    )
    return pl.concat([calls.filter(name.str.contains(_BLOCKING_CALLS))["id"], copying["id"]]).unique()


def allocating() -> pl.Expr:
    """Which events allocate or free device memory below PyTorch's allocator."""
    name, category = pl.col("name").cast(pl.String), pl.col("category").cast(pl.String)
    return (category == Category.RUNTIME) & name.str.contains(_ALLOCATING)


def _reasons(profile: Profile, phases: Phases, training: pl.Expr, blocking: pl.Series) -> dict[Part, Spans]:
    """What the host was doing, in the order in which one thing explains an idle device before another."""
    name = pl.col("name").cast(pl.String)
    category = pl.col("category").cast(pl.String)
    runtime = category == Category.RUNTIME
    working = category.is_in([Category.RUNTIME, Category.ENQUEUE, Category.DEQUEUE]) | (
        (category == Category.OPERATOR)
        & (name.str.contains("::") | pl.col("thread").is_in(list(phases.backward_threads)))
    )
    chosen: Sequence[tuple[Part, pl.Expr]] = (
        (Part.COLLECTOR, category == Category.COLLECTOR),
        (Part.COMPILE, runtime & name.str.contains(_COMPILING)),
        (Part.ALLOCATOR, allocating()),
        (Part.SYNCHRONISATION, pl.col("id").is_in(blocking.implode())),
        (Part.DISPATCH, training & working),
    )
    spans = {part: spans_of(profile.events.filter(wanted)) for part, wanted in chosen}
    return {Part.COLLECTOR: spans.pop(Part.COLLECTOR), Part.DATA: phases.spans[Phase.DATA], **spans}
