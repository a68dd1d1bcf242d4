"""Results of torch_npu's profiler as text: ``trace_view.json`` and the CSV files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from npuport.findings import say
from npuport.performance.reading.communication_files import read_communication
from npuport.performance.reading.csv_tables import bytes_of, nanoseconds, pick, read_csv
from npuport.performance.reading.run_info import read_run_info
from npuport.performance.reading.steps import steps_of
from npuport.performance.reading.torch_npu_trace import TRANSMITTING, WAITING, NpuTrace, read_trace
from npuport.performance.tables import (
    ALLOCATIONS,
    COMMUNICATION,
    EVENTS,
    FREQUENCIES,
    KERNELS,
    MEMORY,
    STEPS,
    Problem,
    Profile,
    empty,
    shaped,
)

_KERNEL_NAMES = {
    "step": ("Step Id",),
    "device": ("Device_id",),
    "name": ("Name", "Op Name"),
    "type": ("Type", "OP Type"),
    "core": ("Accelerator Core", "Task Type"),
    "state": ("OP State",),
    "stream": ("Stream ID",),
    "start": ("Start Time(us)", "Task Start Time(us)"),
    "duration": ("Duration(us)", "Task Duration(us)"),
    "wait": ("Wait Time(us)", "Task Wait Time(us)"),
    "blocks": ("Block Num", "Block Dim"),  # renamed in torch_npu 26.0
    "dtypes": ("Input Data Types",),
    "shapes": ("Input Shapes",),
    "formats": ("Input Formats",),
}
_MEMORY_NAMES = {
    "component": ("Component",),
    "time": ("Timestamp(us)",),
    "allocated": ("Total Allocated(MB)",),
    "reserved": ("Total Reserved(MB)",),
    "active": ("Total Active(MB)",),
    "device": ("Device Type",),
}
_ALLOCATION_NAMES = {
    "name": ("Name",),
    "size": ("Size(KB)",),
    "allocated": ("Allocation Time(us)",),
    "released": ("Release Time(us)",),
    "device": ("Device Type",),
}
_COMMUNICATING_CORES = ("HCCL", "COMMUNICATION")
_CLOCK = 10  # nanoseconds by which files of one profile round the same time differently


def read_text(folder: Path) -> Profile:
    """One result folder (``*_ascend_pt``) whose ``ASCEND_PROFILER_OUTPUT`` holds text."""
    problems: list[Problem] = []
    output = folder / "ASCEND_PROFILER_OUTPUT"
    info = read_run_info(folder, problems)
    trace = _trace(output / "trace_view.json", problems)
    rows, release = _kernel_rows(output / "kernel_details.csv", problems)
    kernels = pl.concat([shaped(part, KERNELS) for part in (_kernels(rows, trace), _copies(trace.tasks))])
    communication = trace.communication
    if communication.is_empty():
        communication = _operations_of(rows)
    communication = _with_tasks(communication, trace.tasks)
    recorded = read_communication(output, problems)
    return Profile(
        path=folder,
        origin="torch_npu text",
        device="npu",
        rank=info.rank,
        events=trace.events,
        kernels=shaped(_launched(kernels, trace.launches), KERNELS),
        communication=shaped(_launched(communication, trace.launches), COMMUNICATION),
        memory=_memory(output / "memory_record.csv", problems),
        steps=steps_of(trace.events, rows),
        allocations=_allocations(output / "operator_memory.csv", problems),
        collectives=recorded.collectives,
        transfers=recorded.transfers,
        links=recorded.links,
        frequencies=trace.frequencies,
        versions=info.versions,
        settings=info.settings | {"columns": release},
        environment=info.environment,
        groups=info.groups,
        problems=tuple(problems),
    )


def read_unparsed(folder: Path) -> Profile:
    """A result folder that holds only what the profiler collected, not what it makes of that."""
    problems: list[Problem] = []
    info = read_run_info(folder, problems)
    reason = say(
        "it was collected, but not parsed: run torch_npu.profiler.profiler.analyse({path!r}) first", path=str(folder)
    )
    return Profile(
        path=folder,
        origin="torch_npu, not parsed",
        device="npu",
        rank=info.rank,
        events=empty(EVENTS),
        kernels=empty(KERNELS),
        communication=empty(COMMUNICATION),
        memory=empty(MEMORY),
        steps=empty(STEPS),
        versions=info.versions,
        settings=info.settings,
        problems=(*problems, Problem(folder, reason)),
    )


def _trace(path: Path, problems: list[Problem]) -> NpuTrace:
    if path.is_file():
        return read_trace(path, problems)
    problems.append(Problem(path, say("it is missing: what the host did is not known")))
    tasks = {"name": pl.Categorical, "task": pl.Categorical, "lane": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}
    launches = {"device_ns": pl.Int64, "launch_thread": pl.Int64, "launch_ns": pl.Int64}
    return NpuTrace(empty(EVENTS), empty(COMMUNICATION), empty(tasks), empty(launches), empty(FREQUENCIES))


def _kernel_rows(path: Path, problems: list[Problem]) -> tuple[pl.DataFrame, str]:
    """``kernel_details.csv`` in our words, with the rows of collectives, and the releases that write its columns.

    Empty where it is not there.
    """
    frame = read_csv(path, problems)
    release = "" if frame is None else _release(frame.columns)
    picked = None if frame is None else pick(frame, path, _KERNEL_NAMES, ("name", "start", "duration"), problems)
    if frame is None and not path.exists():
        problems.append(Problem(path, say("it is missing: types and shapes of the kernels are not known")))
    if picked is None:
        picked = pl.DataFrame(schema=dict.fromkeys(_KERNEL_NAMES, pl.String))
    rows = picked.with_columns(
        nanoseconds("start").alias("start_ns"),
        (nanoseconds("start") + nanoseconds("duration")).alias("end_ns"),
        nanoseconds("wait").alias("wait_ns"),
        (pl.col("core").is_in(_COMMUNICATING_CORES) | pl.col("name").str.starts_with("hcom_"))
        .fill_null(value=False)
        .alias("collective"),
    )
    return rows.drop_nulls(["start_ns", "end_ns"]), release


def _release(columns: Sequence[str]) -> str:
    if "Block Num" in columns:
        return "those of torch_npu 26.0 and later"
    return "those of torch_npu 7.1 to 7.3" if "Device_id" in columns else "those of torch_npu 7.0 and earlier"


def _kernels(rows: pl.DataFrame, trace: NpuTrace) -> pl.DataFrame:
    """The kernels of the CSV file, or, without it, those among the trace's tasks."""
    if rows.is_empty():
        return _computing(trace.tasks)
    kernels = rows.filter(~pl.col("collective")).drop("collective", "step", "start", "duration", "wait")
    return kernels.with_columns(pl.lit("kernel").alias("kind"))


def _computing(tasks: pl.DataFrame) -> pl.DataFrame:
    task = pl.col("task").cast(pl.String)
    is_kernel = task.str.contains("AI_CORE|AI_VECTOR_CORE|AIV|AIC|AI_CPU|DSA") & ~task.str.contains("EVENT")
    return tasks.filter(is_kernel).select(
        "name",
        "start_ns",
        "end_ns",
        pl.col("lane").alias("stream"),
        pl.col("task").alias("core"),
        pl.lit("kernel").alias("kind"),
    )


def _copies(tasks: pl.DataFrame) -> pl.DataFrame:
    name = pl.col("name").cast(pl.String)
    kind = (
        pl.when(name.str.starts_with("MEMCPY"))
        .then(pl.lit("copy"))
        .when(name.str.starts_with("MEMSET"))
        .then(pl.lit("set"))
    )
    copies = tasks.with_columns(kind.alias("kind")).filter(pl.col("kind").is_not_null())
    return copies.select(name.alias("name"), "kind", pl.col("lane").alias("stream"), "start_ns", "end_ns")


def _operations_of(rows: pl.DataFrame) -> pl.DataFrame:
    operations = rows.filter("collective").select("name", "start_ns", "end_ns", pl.lit("operation").alias("kind"))
    return shaped(operations.sort("start_ns"), COMMUNICATION)


def _with_tasks(communication: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    """At level 0 the lanes of the collectives hold no tasks; the device's own lanes do."""
    if communication.is_empty() or communication["kind"].n_unique() > 1:
        return communication
    task = pl.col("task").cast(pl.String)
    kind = pl.when(task.is_in(TRANSMITTING)).then(pl.lit("transmit")).when(task.is_in(WAITING)).then(pl.lit("wait"))
    found = tasks.with_columns(kind.alias("kind")).filter(pl.col("kind").is_not_null())
    found = found.select("name", "kind", pl.col("lane").alias("plane"), "start_ns", "end_ns")
    return shaped(pl.concat([communication, shaped(found, COMMUNICATION)]).sort("start_ns"), COMMUNICATION)


def _launched(table: pl.DataFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """The table with who launched each row, by the time the row starts on the device."""
    plain = table.drop("launch_thread", "launch_ns", strict=False).sort("start_ns")
    return plain.join_asof(
        launches, left_on="start_ns", right_on="device_ns", strategy="nearest", tolerance=_CLOCK, coalesce=False
    )


def _memory(path: Path, problems: list[Problem]) -> pl.DataFrame:
    frame = read_csv(path, problems)
    picked = None if frame is None else pick(frame, path, _MEMORY_NAMES, ("component", "time"), problems)
    if picked is None:
        return empty(MEMORY)
    megabyte = 1 << 20
    return shaped(
        picked.select(
            nanoseconds("time").alias("time_ns"),
            "component",
            *(bytes_of(name, megabyte).alias(f"{name}_bytes") for name in ("allocated", "reserved", "active")),
            pl.col("device").str.extract(r"(\d+)$").alias("device"),
        ).drop_nulls("time_ns"),
        MEMORY,
    )


def _allocations(path: Path, problems: list[Problem]) -> pl.DataFrame:
    frame = read_csv(path, problems)
    picked = None if frame is None else pick(frame, path, _ALLOCATION_NAMES, ("name", "size", "allocated"), problems)
    if picked is None:
        return empty(ALLOCATIONS)
    return shaped(
        picked.select(
            "name",
            bytes_of("size", 1 << 10).alias("bytes"),
            nanoseconds("allocated").alias("allocated_ns"),
            nanoseconds("released").alias("released_ns"),
            pl.col("device").str.extract(r"(\d+)$").alias("device"),
        ),
        ALLOCATIONS,
    )
