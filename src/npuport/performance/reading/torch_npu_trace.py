"""The events of torch_npu's ``trace_view.json`` as tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from npuport.findings import say
from npuport.performance.reading.chrome import Event, Trace, nanoseconds, number, shapes_of
from npuport.performance.tables import COMMUNICATION, EVENTS, FREQUENCIES, Category, Problem, Rows, shaped

_CATEGORIES = {
    "cpu_op": Category.OPERATOR,
    "user_annotation": Category.ANNOTATION,
    "python_function": Category.PYTHON,
    "enqueue": Category.ENQUEUE,
    "dequeue": Category.DEQUEUE,
    "GC": Category.COLLECTOR,
}
_LANES = {
    **COMMUNICATION,
    "process": pl.Categorical,
    "lane": pl.Int64,
    "task": pl.Categorical,
}
_LAUNCHES = {"device_ns": pl.Int64, "launch_thread": pl.Int64, "launch_ns": pl.Int64}
_HOST = ("name", "category", "thread", "start_ns", "end_ns", "sequence", "forward_thread", "stack", "shapes")
_TASK = ("bytes", "link", "transport", "source", "destination", "dtype")
_OTHER = ("process", "lane", "name", "start_ns", "end_ns", "task", *_TASK)
# Tasks of a collective that move data. Notify_Record only tells another rank, in well under a microsecond.
TRANSMITTING = ("Memcpy", "Reduce_Inline", "Reduce TBE", "RDMASend", "SDMA", "RDMA_SEND")
_CLOCK = "AI Core Freq"
WAITING = ("Notify_Wait", "Notify Wait")


@dataclass(frozen=True, slots=True)
class NpuTrace:
    """What a trace holds: host events, communication, tasks of the device, and which operator launched what."""

    events: pl.DataFrame
    communication: pl.DataFrame  # without launches
    tasks: pl.DataFrame  # name, task (its type), lane (its stream), start_ns, end_ns
    launches: pl.DataFrame  # device_ns (start of a task) and who launched it
    frequencies: pl.DataFrame


def read_trace(path: Path, problems: list[Problem]) -> NpuTrace:
    """All events that tell where time goes; of counters the clock of the cores alone."""
    trace = Trace(path)
    host, other, launches = Rows(_HOST, EVENTS), Rows(_OTHER, _LANES), Rows(_LAUNCHES, _LAUNCHES)
    frequencies = Rows(FREQUENCIES, FREQUENCIES)
    processes: dict[str, str] = {}
    lanes: dict[tuple[str, int], str] = {}
    for piece in trace.pieces():
        for event in piece:
            if event.ph == "X":
                if event.ts is not None and event.dur is not None:
                    _duration(event, host, other)
            elif event.ph == "s":
                if event.cat == "async_npu" and event.ts is not None:
                    launches.add((number(event.id), number(event.tid), nanoseconds(event.ts)))
            elif event.ph == "C" and event.name == _CLOCK:
                if event.ts is not None and event.args is not None:
                    frequencies.add((nanoseconds(event.ts), number(event.args.mhz)))
            elif event.ph == "M" and event.args is not None and event.args.name is not None:
                if event.name == "process_name":
                    processes[str(event.pid)] = event.args.name
                elif event.name == "thread_name" and (lane := number(event.tid)) is not None:
                    lanes[str(event.pid), lane] = event.args.name
        for rows in (host, other, launches):
            rows.pack()
    name_problems(trace, problems)
    rest = other.frame()
    events = pl.concat([host.frame(), _runtime(rest, processes)], how="diagonal")
    return NpuTrace(
        events=shaped(events.sort("start_ns", "end_ns", descending=[False, True]), EVENTS),
        communication=_communication(rest, processes, lanes),
        tasks=_of(rest, processes, "Ascend Hardware").select("name", "task", "lane", "start_ns", "end_ns"),
        launches=launches.frame().drop_nulls().unique("device_ns", keep="first").sort("device_ns"),
        frequencies=frequencies.frame().drop_nulls().sort("time_ns"),
    )


def _duration(event: Event, host: Rows, other: Rows) -> None:
    assert event.ts is not None and event.dur is not None
    start = nanoseconds(event.ts)
    end = start + nanoseconds(event.dur)
    arguments = event.args
    category = _CATEGORIES.get(event.cat or "")
    if category is not None:
        sequence = forward = stack = shapes = None
        if arguments is not None:
            sequence, forward = number(arguments.sequence), number(arguments.forward_thread)
            stack = None if arguments.stack is None else arguments.stack.replace("\r\n", "")
            shapes = shapes_of(arguments.shapes)
        host.add((event.name, category, number(event.tid), start, end, sequence, forward, stack, shapes))
        return
    task = size = link = transport = source = destination = dtype = None
    if arguments is not None:
        task, size, link, transport = arguments.task_type, number(arguments.size), arguments.link, arguments.transport
        source, destination, dtype = number(arguments.source), number(arguments.destination), arguments.data_type
    lane = number(event.tid)
    other.add((str(event.pid), lane, event.name, start, end, task, size, link, transport, source, destination, dtype))


def name_problems(trace: Trace, problems: list[Problem]) -> None:
    """Note what of a trace could not be read, once all of its pieces were taken."""
    if trace.problem is not None:
        problems.append(Problem(trace.path, trace.problem))
    if trace.bad_events:
        problems.append(Problem(trace.path, say("{number} events are malformed", number=trace.bad_events)))


def _of(rest: pl.DataFrame, processes: dict[str, str], *names: str) -> pl.DataFrame:
    wanted = [pid for pid, name in processes.items() if name in names]
    return rest.filter(pl.col("process").cast(pl.String).is_in(wanted))


def _runtime(rest: pl.DataFrame, processes: dict[str, str]) -> pl.DataFrame:
    """Calls of CANN's interfaces, without the layer in front of the name ("AscendCL@aclrtMemcpy")."""
    return _of(rest, processes, "CANN").select(
        pl.col("name").cast(pl.String).str.replace(r"^\w+@", "").cast(pl.Categorical),
        pl.lit(Category.RUNTIME, dtype=pl.Categorical).alias("category"),
        pl.col("lane").alias("thread"),
        "start_ns",
        "end_ns",
    )


def _communication(rest: pl.DataFrame, processes: dict[str, str], lanes: dict[tuple[str, int], str]) -> pl.DataFrame:
    """Operations stand in lanes "Group N Communication"; the lanes "Plane K" after one hold its tasks."""
    found = _of(rest, processes, "HCCL", "Communication")
    named: dict[int, tuple[str, bool]] = {}
    group = ""
    for (pid, lane), name in sorted(lanes.items()):
        if processes.get(pid) in ("HCCL", "Communication"):
            if not name.startswith("Plane"):
                group = name.removesuffix(" Communication")
            named[lane] = group, name.startswith("Plane")
    groups = {lane: name for lane, (name, _) in named.items()}
    planes = [lane for lane, (_, is_plane) in named.items() if is_plane]
    task = pl.col("name").cast(pl.String)
    kind = (
        pl.when(~pl.col("lane").is_in(planes))
        .then(pl.lit("operation"))
        .when(task.is_in(TRANSMITTING))
        .then(pl.lit("transmit"))
        .when(task.is_in(WAITING))
        .then(pl.lit("wait"))
    )
    table = found.with_columns(
        kind.alias("kind"),
        pl.col("lane").replace_strict(groups, default=None, return_dtype=pl.String).alias("group"),
        pl.when(pl.col("lane").is_in(planes)).then(pl.col("lane")).alias("plane"),
    ).filter(pl.col("kind").is_not_null())
    return shaped(table.sort("start_ns"), COMMUNICATION)
