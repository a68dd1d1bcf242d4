"""Results of torch_npu's profiler as a SQLite database (``ascend_pytorch_profiler[_RANK].db``)."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from npuport.findings import say
from npuport.performance.reading.communication_files import read_communication
from npuport.performance.reading.run_info import groups_of, read_run_info
from npuport.performance.reading.sqlite_tables import Database, first, first_text, text
from npuport.performance.reading.steps import steps_of
from npuport.performance.reading.torch_npu_trace import TRANSMITTING, WAITING
from npuport.performance.tables import (
    ALLOCATIONS,
    COMMUNICATION,
    EVENTS,
    FREQUENCIES,
    KERNELS,
    MEMORY,
    STEPS,
    Category,
    Problem,
    Profile,
    empty,
    shaped,
)

_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_THREAD = "t.globalTid & 4294967295"  # the upper half of a global thread number is the process
_TIMES = {"start_ns": "CAST(t.startNs AS INTEGER)", "end_ns": "CAST(t.endNs AS INTEGER)"}
# Types of ENUM_API_TYPE.
_CATEGORY = (
    "CASE t.type WHEN 50001 THEN 'operator' WHEN 50003 THEN 'python' WHEN 50004 THEN 'annotation' "
    f"WHEN 50002 THEN CASE WHEN {text('t.name')} LIKE 'Dequeue%' THEN 'dequeue' ELSE 'enqueue' END END"
)
_LAUNCH = {"connection": pl.Int64, "launch_thread": pl.Int64, "launch_ns": pl.Int64}


def read_database(path: Path) -> Profile:
    """One database. ``path`` is the file."""
    problems: list[Problem] = []
    folder = path.parent.parent if path.parent.name == _OUTPUT else path.parent
    info = read_run_info(folder, problems)
    profile = Profile(
        path=folder if path.parent.name == _OUTPUT else path,
        origin="torch_npu database",
        device="npu",
        rank=info.rank,
        events=empty(EVENTS),
        kernels=empty(KERNELS),
        communication=empty(COMMUNICATION),
        memory=empty(MEMORY),
        steps=empty(STEPS),
        versions=info.versions,
        settings=info.settings,
        environment=info.environment,
        groups=info.groups,
    )
    recorded = read_communication(path.parent, problems)
    profile = replace(profile, collectives=recorded.collectives, transfers=recorded.transfers, links=recorded.links)
    try:
        with closing(Database(path, problems)) as database:
            profile = _filled(profile, database, problems)
    except sqlite3.Error as error:
        problems.append(Problem(path, say("it cannot be read ({reason})", reason=error)))
    return replace(profile, problems=tuple(problems))


def _filled(profile: Profile, database: Database, problems: list[Problem]) -> Profile:
    if not database.columns("TASK") and not database.columns("PYTORCH_API"):
        problems.append(Problem(database.path, say("it holds none of the profiler's tables")))
    elif not database.columns("PYTORCH_API"):
        problems.append(Problem(database.path, say("it holds no events of PyTorch: what the host did is not known")))
    launches = _launches(database)
    events = _events(database)
    kernels = _kernels(database, launches)
    rank = database.value("SELECT rankId FROM RANK_DEVICE_MAP") if profile.rank is None else profile.rank
    return replace(
        profile,
        rank=None if rank is None else int(rank),
        events=events,
        kernels=kernels,
        communication=_communication(database, launches),
        memory=_memory(database),
        allocations=_allocations(database),
        steps=_steps(database, events, kernels),
        frequencies=database.read(
            "AICORE_FREQ", {"time_ns": "CAST(t.timestampNs AS INTEGER)", "mhz": "t.freq"}, FREQUENCIES
        ).sort("time_ns"),
        environment=profile.environment
        or {str(name): str(one) for name, one in _told(database, "ENV_VARIABLES").items()},
        groups=profile.groups or groups_of(_told(database, "parallel_group_info")),
    )


def _told(database: Database, name: str) -> dict[str, Any]:
    """What the profiler wrote of the run under a name."""
    stored = database.value(f"SELECT value FROM META_DATA WHERE name = '{name}'")
    try:
        value = json.loads(stored or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _steps(database: Database, events: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    steps = steps_of(events, kernels)
    if steps["thread"].null_count() and database.columns("STEP_TIME"):
        steps = shaped(database.read("STEP_TIME", {"step": "t.id", **_TIMES}, STEPS).sort("start_ns"), STEPS)
    return steps


def _events(database: Database) -> pl.DataFrame:
    columns = database.columns("PYTORCH_API")
    framework = database.read(
        "PYTORCH_API",
        {
            "name": text("t.name"),
            "category": _CATEGORY,
            "thread": _THREAD,
            **_TIMES,
            "sequence": first(columns, "sequenceNumber"),
            "forward_thread": first(columns, "fwdThreadId"),
            "chain": first(columns, "callchainId"),
            "shapes": first_text(columns, "inputShapes"),
            "dtypes": first_text(columns, "inputDtypes"),
        },
        {**EVENTS, "chain": pl.Int64, "dtypes": pl.String},
    )
    # Some databases hold each of the two in the other's place.
    swapped = pl.col("shapes").cast(pl.String).str.contains("[A-Za-z]")
    shapes = pl.when(swapped).then(pl.col("dtypes")).otherwise(pl.col("shapes").cast(pl.String))
    framework = framework.with_columns(shapes.str.replace_all("\r\n", "", literal=True).alias("shapes"))
    call = {"name": text("t.name"), "category": f"'{Category.RUNTIME}'", "thread": _THREAD, **_TIMES}
    pause = {"name": "'GC'", "category": f"'{Category.COLLECTOR}'", "thread": _THREAD, **_TIMES}
    tables = [
        framework.join(_stacks(database), on="chain", how="left", maintain_order="left"),
        database.read("CANN_API", call, EVENTS),
        database.read("GC_RECORD", pause, EVENTS),
    ]
    everything = pl.concat([shaped(table, EVENTS).drop("id") for table in tables]).drop_nulls("category")
    return shaped(everything.sort("start_ns", "end_ns", descending=[False, True], maintain_order=True), EVENTS)


def _stacks(database: Database) -> pl.DataFrame:
    frames = database.read(
        "PYTORCH_CALLCHAINS",
        {"chain": "t.id", "depth": "t.stackDepth", "frame": text("t.stack")},
        {"chain": pl.Int64, "depth": pl.Int64, "frame": pl.String},
    )
    return frames.sort("chain", "depth").group_by("chain").agg(pl.col("frame").str.join(";").alias("stack"))


def _launches(database: Database) -> pl.DataFrame:
    """Who launched the tasks of a connection: PyTorch's operator, else its hand-over to the task queue, else CANN's."""
    linked = "JOIN CONNECTION_IDS c ON c.id = t.connectionId"
    columns = {"connection": "c.connectionId", "launch_thread": _THREAD, "launch_ns": _TIMES["start_ns"], "rank": "0"}
    kinds = {**_LAUNCH, "rank": pl.Int64}
    found = []
    if database.columns("CONNECTION_IDS"):
        where = "AND t.name NOT IN (SELECT id FROM STRING_IDS WHERE value LIKE 'Dequeue%')"
        found = [
            database.read("PYTORCH_API", {**columns, "rank": rank}, kinds, f"{linked} {where}")
            for rank, where in (("0", "WHERE t.type = 50001"), ("1", f"WHERE t.type = 50002 {where}"))
        ]
    call = {"connection": "t.connectionId", "launch_thread": _THREAD, "launch_ns": _TIMES["start_ns"], "rank": "2"}
    found.append(database.read("CANN_API", call, kinds))
    return pl.concat(found).drop_nulls().sort("rank", "launch_ns").unique("connection", keep="first").drop("rank")


def _kernels(database: Database, launches: pl.DataFrame) -> pl.DataFrame:
    columns = database.columns("COMPUTE_TASK_INFO")
    task = "JOIN TASK k ON k.globalTaskId = t.globalTaskId"
    placed = {
        "start_ns": "CAST(k.startNs AS INTEGER)",
        "end_ns": "CAST(k.endNs AS INTEGER)",
        "stream": "k.streamId",
        "device": "k.deviceId",
        "connection": "k.connectionId",
    }
    schema = {**KERNELS, "connection": pl.Int64}
    kernels = database.read(
        "COMPUTE_TASK_INFO",
        {
            "name": text("t.name"),
            "kind": "'kernel'",
            "type": first_text(columns, "opType"),
            "core": first_text(columns, "taskType"),
            "state": first_text(columns, "opState"),
            "blocks": first(columns, "blockNum", "blockDim"),
            "wait_ns": first(columns, "waitNs"),
            "dtypes": first_text(columns, "inputDataTypes"),
            "shapes": first_text(columns, "inputShapes"),
            "formats": first_text(columns, "inputFormats"),
            **placed,
        },
        schema,
        task,
    )
    kind = f"CASE WHEN {text('t.taskType')} LIKE 'MEMCPY%' THEN 'copy' ELSE 'set' END"
    copies = database.read(
        "TASK",
        {
            "name": text("t.taskType"),
            "kind": kind,
            **{ours: sql.replace("k.", "t.") for ours, sql in placed.items()},
        },
        schema,
        "WHERE t.taskType IN (SELECT id FROM STRING_IDS WHERE value LIKE 'MEMCPY%' OR value LIKE 'MEMSET%')",
    )
    both = pl.concat([kernels, copies], how="diagonal")
    plain = pl.col("shapes", "dtypes", "formats").cast(pl.String).str.strip_chars('"')
    both = both.with_columns(plain)
    return shaped(both.join(launches, on="connection", how="left").sort("start_ns"), KERNELS)


def _communication(database: Database, launches: pl.DataFrame) -> pl.DataFrame:
    columns = database.columns("COMMUNICATION_OP")
    schema = {**COMMUNICATION, "connection": pl.Int64, "operation": pl.Int64}
    operations = database.read(
        "COMMUNICATION_OP",
        {
            "name": text("t.opName"),
            "kind": "'operation'",
            "group": first_text(columns, "groupName"),
            **_TIMES,
            "dtype": "(SELECT name FROM ENUM_HCCL_DATA_TYPE e WHERE e.id = t.dataType)"
            if database.columns("ENUM_HCCL_DATA_TYPE")
            else None,
            "connection": first(columns, "connectionId"),
        },
        schema,
    )
    tasks = database.read(
        "COMMUNICATION_TASK_INFO",
        {
            "name": text("t.taskType"),
            "group": text("t.groupName"),
            "plane": "t.planeId",
            "start_ns": "CAST(k.startNs AS INTEGER)",
            "end_ns": "CAST(k.endNs AS INTEGER)",
            "bytes": "t.size",
            "link": "(SELECT name FROM ENUM_HCCL_LINK_TYPE e WHERE e.id = t.linkType)",
            "transport": "(SELECT name FROM ENUM_HCCL_TRANSPORT_TYPE e WHERE e.id = t.transportType)",
            "source": "t.srcRank",
            "destination": "t.dstRank",
        },
        schema,
        "JOIN TASK k ON k.globalTaskId = t.globalTaskId",
    )
    name = pl.col("name").cast(pl.String)
    kind = pl.when(name.is_in(TRANSMITTING)).then(pl.lit("transmit")).when(name.is_in(WAITING)).then(pl.lit("wait"))
    tasks = tasks.with_columns(kind.cast(pl.Categorical).alias("kind")).drop_nulls("kind")
    both = pl.concat([operations, tasks], how="diagonal").join(launches, on="connection", how="left")
    return shaped(both.sort("start_ns"), COMMUNICATION)


def _memory(database: Database) -> pl.DataFrame:
    columns = database.columns("MEMORY_RECORD")
    records = database.read(
        "MEMORY_RECORD",
        {
            "time_ns": "CAST(t.timestamp AS INTEGER)",
            "component": text("t.component"),
            "allocated_bytes": first(columns, "totalAllocated"),
            "reserved_bytes": first(columns, "totalReserved"),
            "active_bytes": first(columns, "totalActive"),
            "device": first(columns, "deviceId"),
        },
        MEMORY,
    )
    # What the whole process holds, and the device: in the text among the others.
    whole = database.read(
        "NPU_MEM",
        {
            "time_ns": "CAST(t.timestampNs AS INTEGER)",
            "component": f"upper({text('t.type')})",
            "reserved_bytes": "CAST(t.hbm AS INTEGER)",
            "device": "t.deviceId",
        },
        MEMORY,
    )
    return shaped(pl.concat([records, whole], how="diagonal").sort("time_ns"), MEMORY)


def _allocations(database: Database) -> pl.DataFrame:
    columns = database.columns("OP_MEMORY")
    records = database.read(
        "OP_MEMORY",
        {
            "name": text("t.name"),
            "bytes": first(columns, "size"),
            "allocated_ns": first(columns, "allocationTime"),
            "released_ns": first(columns, "releaseTime"),
            "device": first(columns, "deviceId"),
        },
        ALLOCATIONS,
    )
    return records.sort("allocated_ns")
