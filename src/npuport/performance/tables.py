"""The one set of tables that all profiles are read into. Times are whole nanoseconds of the profile's own clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from npuport.findings import Sentence

Schema = Mapping[str, Any]  # name of a column -> its Polars type

# Texts that repeat are kept once.
_TEXT = pl.Categorical

# What the host did. Categories: see Category.
EVENTS: Schema = {
    "id": pl.UInt32,  # position in this table; findings name it as evidence
    "name": _TEXT,
    "category": _TEXT,
    "thread": pl.Int64,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "sequence": pl.Int64,  # autograd's number, which an operator shares with its backward; null where there is none
    "forward_thread": pl.Int64,  # of a backward operator: the thread of its forward; 0 or null elsewhere
    "stack": _TEXT,  # "path(line): function" of each frame, innermost first, separated by ";"
    "shapes": _TEXT,  # of the inputs: "32,3,224,224;64" (NPU) or "[[32, 3, 224, 224], [64]]" (Kineto)
}

# What the device did: kernels, copies and memory settings; communication is in a table of its own.
KERNELS: Schema = {
    "id": pl.UInt32,
    "name": _TEXT,
    "type": _TEXT,  # operator type, such as "Conv2D"; null where the profiler did not record it (level 0)
    "kind": _TEXT,  # "kernel", "copy" or "set"
    "stream": pl.Int64,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "wait_ns": pl.Int64,  # time the device was idle before it, as the profiler wrote it
    "core": _TEXT,  # "AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "AI_CPU", …; null at level 0
    "state": _TEXT,  # "static" or "dynamic", null where not recorded
    "blocks": pl.Int64,
    "dtypes": _TEXT,
    "shapes": _TEXT,
    "formats": _TEXT,
    "bytes": pl.Int64,  # of copies and settings
    "device": pl.Int64,
    "launch_thread": pl.Int64,  # the host thread whose operator launched it
    "launch_ns": pl.Int64,  # when that operator (NPU) or launch call (GPU) started
}

# Collectives and point-to-point operations, and the tasks they consist of.
COMMUNICATION: Schema = {
    "id": pl.UInt32,
    "name": _TEXT,  # of an operation: "hcom_allReduce__586_0_1"; of a task: "Memcpy", "Notify_Wait", …
    "kind": _TEXT,  # "operation"; tasks: "transmit" moves data, "wait" waits for another rank
    "group": _TEXT,
    "plane": pl.Int64,  # tasks only: the lane they ran on
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "bytes": pl.Int64,
    "link": _TEXT,  # "HCCS", "PCIE", "ROCE", "ON_CHIP", …
    "transport": _TEXT,  # "SDMA", "RDMA" or "LOCAL"
    "source": pl.Int64,
    "destination": pl.Int64,
    "dtype": _TEXT,
    "launch_thread": pl.Int64,
    "launch_ns": pl.Int64,
}

MEMORY: Schema = {
    "time_ns": pl.Int64,
    "component": _TEXT,  # "PTA" (PyTorch's allocator), "GE", "APP" (the whole process), …
    "allocated_bytes": pl.Int64,
    "reserved_bytes": pl.Int64,
    "active_bytes": pl.Int64,
    "device": pl.Int64,
}

# Memory that an operator took from PyTorch's allocator.
ALLOCATIONS: Schema = {
    "name": _TEXT,  # of the operator
    "bytes": pl.Int64,
    "allocated_ns": pl.Int64,
    "released_ns": pl.Int64,  # null where it was kept beyond the profile
    "device": pl.Int64,
}

# What the profiler itself says about each collective, beside the events in COMMUNICATION.
COLLECTIVES: Schema = {
    "step": pl.Int64,
    "kind": _TEXT,  # "collective" or "p2p"
    "name": _TEXT,
    "group": _TEXT,
    "start_ns": pl.Int64,
    "elapse_ns": pl.Int64,
    "transit_ns": pl.Int64,
    "wait_ns": pl.Int64,
    "synchronization_ns": pl.Int64,  # waiting before the first byte moved
    "idle_ns": pl.Int64,
}

# What each collective moved over which kind of transport.
TRANSFERS: Schema = {
    "step": pl.Int64,
    "name": _TEXT,
    "group": _TEXT,
    "transport": _TEXT,  # "HCCS", "RDMA", "PCIE", "SIO"; "SDMA" is the sum of those inside a node
    "bytes": pl.Int64,
    "time_ns": pl.Int64,
}

# What moved from rank to rank.
LINKS: Schema = {
    "step": pl.Int64,
    "selection": _TEXT,  # "allreduce-total", or a single collective of many: "allreduce-top1", "allreduce-middle", …
    "group": _TEXT,
    "source": pl.Int64,
    "destination": pl.Int64,
    "transport": _TEXT,
    "bytes": pl.Int64,
    "time_ns": pl.Int64,
}

# The clock of the AI cores, at the start, at the end and whenever it changed.
FREQUENCIES: Schema = {
    "time_ns": pl.Int64,
    "mhz": pl.Int64,
}

STEPS: Schema = {
    "step": pl.Int64,  # null where no step was marked: the whole profile counts as one
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "thread": pl.Int64,  # the thread that runs the training loop; null where no host events were recorded
}


class Category:
    """The categories of host events, the same for every profiler."""

    OPERATOR = "operator"  # one call through PyTorch's dispatcher, or a range the framework marks
    ANNOTATION = "annotation"  # record_function and mstx ranges of the user
    PYTHON = "python"  # a Python frame
    RUNTIME = "runtime"  # a call of CANN's or CUDA's C interface
    ENQUEUE = "enqueue"  # torch_npu hands a launch to its queue's thread …
    DEQUEUE = "dequeue"  # … which carries it out
    COLLECTOR = "collector"  # Python's garbage collector


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of a profile that could not be read; everything else was."""

    path: Path
    reason: Sentence


@dataclass(frozen=True, slots=True)
class Profile:
    """What one rank's profile holds.

    ``origin`` says what was read: "torch_npu text", "torch_npu database" or "Kineto trace"; ``device`` is "npu", "gpu"
    or "cpu". ``versions`` holds what the profile itself states, such as {"torch_npu": "2.6.0", "cann": "8.0.0"}, and
    ``settings`` the profiler's own, such as {"level": "Level1", "with_stack": True}. ``groups`` are the process groups
    that the rank belongs to, by what they are for: ("pp", (0, 4, 8, 12)). ``chip`` is the name of the device as its
    driver gives it; torch_npu's profiler does not write it.
    """

    path: Path
    origin: str
    device: str
    rank: int | None
    events: pl.DataFrame
    kernels: pl.DataFrame
    communication: pl.DataFrame
    memory: pl.DataFrame
    steps: pl.DataFrame
    versions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    allocations: pl.DataFrame = field(default_factory=lambda: empty(ALLOCATIONS))
    collectives: pl.DataFrame = field(default_factory=lambda: empty(COLLECTIVES))
    transfers: pl.DataFrame = field(default_factory=lambda: empty(TRANSFERS))
    links: pl.DataFrame = field(default_factory=lambda: empty(LINKS))
    frequencies: pl.DataFrame = field(default_factory=lambda: empty(FREQUENCIES))
    groups: tuple[tuple[str, tuple[int, ...]], ...] = ()
    chip: str = ""
    problems: tuple[Problem, ...] = ()


def empty(schema: Schema) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=dict(schema))


def shaped(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The frame with exactly the columns of a schema, in order; those it lacks are null. ``id`` is counted anew."""
    columns = [
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind, strict=False).alias(name)
        for name, kind in schema.items()
        if name != "id"
    ]
    selected = frame.select(columns)
    return selected.with_row_index("id") if "id" in schema else selected


class Rows:
    """Collects rows of a table and packs them column by column, so that millions take little memory."""

    def __init__(self, names: Iterable[str], schema: Schema) -> None:
        self._names = tuple(names)
        self._types = [schema[name] for name in self._names]
        self._rows: list[tuple[object, ...]] = []
        self._packed: list[pl.DataFrame] = []
        self.add = self._rows.append

    def pack(self) -> None:
        """Turn the rows collected so far into columns."""
        if not self._rows:
            return
        columns = zip(self._names, self._types, zip(*self._rows, strict=True), strict=True)
        self._packed.append(
            pl.DataFrame([pl.Series(name, values, dtype=kind, strict=False) for name, kind, values in columns])
        )
        self._rows.clear()

    def frame(self) -> pl.DataFrame:
        """All rows."""
        self.pack()
        if not self._packed:
            return pl.DataFrame(schema=dict(zip(self._names, self._types, strict=True)))
        return pl.concat(self._packed)
