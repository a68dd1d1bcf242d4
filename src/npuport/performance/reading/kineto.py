"""Traces of PyTorch's own profiler (Kineto): ``*.pt.trace.json[.gz]`` from 2021 on, of GPUs and of the CPU alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from npuport.findings import say
from npuport.performance.reading.chrome import Event, Trace, nanoseconds, number, shapes_of
from npuport.performance.reading.steps import steps_of
from npuport.performance.reading.torch_npu_trace import name_problems
from npuport.performance.tables import (
    COMMUNICATION,
    EVENTS,
    KERNELS,
    MEMORY,
    Category,
    Problem,
    Profile,
    Rows,
    shaped,
)

# The second name of each is that of 2021.
_HOST = {
    "cpu_op": Category.OPERATOR,
    "Operator": Category.OPERATOR,
    "user_annotation": Category.ANNOTATION,
    "python_function": Category.PYTHON,
    "cuda_runtime": Category.RUNTIME,
    "cuda_driver": Category.RUNTIME,
    "hip_runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "Runtime": Category.RUNTIME,
}
_DEVICE = {
    "kernel": "kernel",
    "Kernel": "kernel",
    "gpu_memcpy": "copy",
    "Memcpy": "copy",
    "gpu_memset": "set",
    "Memset": "set",
}
# They repeat what others say, or say nothing about time.
_PASSED_OVER = {"Trace", "gpu_user_annotation", "overhead", "cuda_sync", "cuda_profiler_range"}
_LINKS = {"correlation": pl.Int64, "external": pl.Int64}
_EVENT_SCHEMA = {**EVENTS, **_LINKS}
_EVENT_COLUMNS = ("name", "category", "thread", "start_ns", "end_ns", "sequence", "forward_thread", "stack", "shapes")
_KERNEL_SCHEMA = {**KERNELS, **_LINKS, "collective": pl.Categorical, "group": pl.Categorical, "dtype": pl.Categorical}
_KERNEL_COLUMNS = (
    "name", "kind", "stream", "start_ns", "end_ns", "bytes", "device", "correlation", "external",
    "collective", "group", "dtype",
)  # fmt: skip
_MEMORY_COLUMNS = ("time_ns", "component", "allocated_bytes", "reserved_bytes", "device")
_SETTINGS = {"stacks": "with_stack", "shapes": "record_shapes", "memory": "profile_memory", "modules": "with_modules"}
_VERSIONS = {"cuda": "cuda_runtime_version", "driver": "cuda_driver_version"}
_CPU = 0  # PyTorch's number of the device type of host memory


def read_kineto(path: Path) -> Profile:
    """One trace file."""
    problems: list[Problem] = []
    trace = Trace(path)
    events = Rows((*_EVENT_COLUMNS, *_LINKS), _EVENT_SCHEMA)
    kernels = Rows(_KERNEL_COLUMNS, _KERNEL_SCHEMA)
    memory = Rows(_MEMORY_COLUMNS, MEMORY)
    unknown: Counter[str] = Counter()
    for piece in trace.pieces():
        for event in piece:
            if event.ts is None:
                continue
            if event.ph == "X" and event.dur is not None:
                if not _duration(event, events, kernels):
                    unknown[event.cat or ""] += 1
            elif event.ph == "i" and event.name == "[memory]":
                _allocation(event, memory)
        for rows in (events, kernels, memory):
            rows.pack()
    name_problems(trace, problems)
    for category, count in (unknown - Counter(dict.fromkeys(_PASSED_OVER, unknown.total()))).items():
        reason = say("{number} events are of a kind that is not read: {kind}", number=count, kind=category or '""')
        problems.append(Problem(path, reason))
    origin = _origin(trace.header)
    host, device, used = (_moved(rows.frame(), origin) for rows in (events, kernels, memory))
    if host.is_empty() and device.is_empty() and trace.problem is None:
        problems.append(Problem(path, say("it holds no events of PyTorch's profiler")))
    host = host.sort("start_ns", "end_ns", descending=[False, True], maintain_order=True)
    device = _launched(device.sort("start_ns"), host)
    is_collective = pl.col("collective").is_not_null() | pl.col("name").cast(pl.String).str.contains("(?i)nccl")
    table = shaped(host, EVENTS)
    distributed = trace.header.get("distributedInfo")
    return Profile(
        path=path,
        origin="Kineto trace",
        device="gpu" if device.height or (host["category"].cast(pl.String) == Category.RUNTIME).any() else "cpu",
        rank=number(distributed.get("rank")) if isinstance(distributed, dict) else None,
        events=table,
        kernels=shaped(device.filter(~is_collective), KERNELS),
        communication=_communication(device.filter(is_collective)),
        memory=shaped(used.sort("time_ns"), MEMORY),
        steps=steps_of(table, device),
        versions=_versions(trace.header),
        settings={ours: trace.header[theirs] for ours, theirs in _SETTINGS.items() if theirs in trace.header},
        chip=_chip(trace.header),
        problems=tuple(problems),
    )


def _duration(event: Event, events: Rows, kernels: Rows) -> bool:
    """Note one event; False where it is of a kind that no table holds."""
    assert event.ts is not None and event.dur is not None
    start = nanoseconds(event.ts)
    end = start + nanoseconds(event.dur)
    kind = event.cat or ""
    arguments = event.args
    if (category := _HOST.get(kind)) is not None:
        if arguments is None:
            events.add((event.name, category, number(event.tid), start, end, *(None,) * 6))
            return True
        stack = None if arguments.stack is None else arguments.stack.replace("\r\n", "")
        external = arguments.external if arguments.external is not None else arguments.external_old
        events.add(
            (
                event.name, category, number(event.tid), start, end, number(arguments.sequence),
                number(arguments.forward_thread), stack, shapes_of(arguments.shapes),
                number(arguments.correlation), number(external),
            )
        )  # fmt: skip
    elif kind in _DEVICE:
        if arguments is None:
            kernels.add((event.name, _DEVICE[kind], number(event.tid), start, end, *(None,) * 7))
            return True
        stream = number(arguments.stream)
        external = arguments.external if arguments.external is not None else arguments.external_old
        kernels.add(
            (
                event.name, _DEVICE[kind], number(event.tid) if stream is None else stream, start, end,
                number(arguments.bytes), number(arguments.device), number(arguments.correlation), number(external),
                arguments.collective, arguments.group, arguments.dtype,
            )
        )  # fmt: skip
    else:
        return False
    return True


def _allocation(event: Event, memory: Rows) -> None:
    arguments = event.args
    if event.ts is None or arguments is None or number(arguments.device_type) == _CPU:
        return
    allocated, reserved = number(arguments.allocated), number(arguments.reserved)
    if allocated is not None or reserved is not None:
        memory.add((nanoseconds(event.ts), "PyTorch", allocated, reserved, number(arguments.device_id)))


def _origin(header: dict[str, Any]) -> int:
    """What times of newer traces count from, in nanoseconds since 1970; 0 for older ones."""
    value = header.get("baseTimeNanoseconds")
    return value if isinstance(value, int) else 0


def _moved(frame: pl.DataFrame, origin: int) -> pl.DataFrame:
    """The table with its times since 1970, so that those of several ranks can be compared."""
    if not origin:
        return frame
    return frame.with_columns((pl.col(name) + origin) for name in frame.columns if name.endswith("_ns"))


def _launched(device: pl.DataFrame, host: pl.DataFrame) -> pl.DataFrame:
    """Kernels with the call that launched them; where none was recorded, with the operator they belong to."""
    launch = [pl.col("thread").alias("launch_thread"), pl.col("start_ns").alias("launch_ns")]
    calls = host.filter(pl.col("category").cast(pl.String) == Category.RUNTIME).drop_nulls("correlation")
    calls = calls.unique("correlation", keep="first").select("correlation", *launch)
    operators = host.filter(pl.col("category").cast(pl.String) == Category.OPERATOR).drop_nulls("external")
    operators = operators.unique("external", keep="first").select(
        "external", *(one.name.prefix("operator_") for one in (pl.col("thread"), pl.col("start_ns")))
    )
    joined = device.join(calls, on="correlation", how="left", maintain_order="left")
    joined = joined.join(operators, on="external", how="left", maintain_order="left")
    known = pl.col("launch_ns").is_not_null()
    return joined.with_columns(
        pl.when(known).then("launch_thread").otherwise("operator_thread").alias("launch_thread"),
        pl.when(known).then("launch_ns").otherwise("operator_start_ns").alias("launch_ns"),
    )


def _communication(collectives: pl.DataFrame) -> pl.DataFrame:
    named = pl.coalesce(pl.col("collective").cast(pl.String), pl.col("name").cast(pl.String))
    return shaped(
        collectives.with_columns(named.alias("name"), pl.lit("operation").alias("kind")).drop("bytes"), COMMUNICATION
    )


def _chip(header: dict[str, Any]) -> str:
    devices = header.get("deviceProperties")
    first = devices[0] if isinstance(devices, list) and devices else {}
    return str(first.get("name", "")) if isinstance(first, dict) else ""


def _versions(header: dict[str, Any]) -> dict[str, str]:
    versions = {ours: str(header[theirs]) for ours, theirs in _VERSIONS.items() if header.get(theirs)}
    distributed = header.get("distributedInfo")
    if isinstance(distributed, dict) and distributed.get("nccl_version"):
        versions["nccl"] = str(distributed["nccl_version"])
    return versions
