"""What torch_npu's profiler says about collectives beside the trace: times, transports and links of each.

As text in ``communication.json`` and ``communication_matrix.json``, as tables in ``analysis.db``.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from npuport.findings import say
from npuport.performance.reading.sqlite_tables import Database
from npuport.performance.tables import COLLECTIVES, LINKS, TRANSFERS, Problem, Rows, Schema, empty


class Recorded(NamedTuple):
    """The three tables of the same names in ``tables``."""

    collectives: pl.DataFrame
    transfers: pl.DataFrame
    links: pl.DataFrame


_SCHEMAS: dict[str, Schema] = {"collectives": COLLECTIVES, "transfers": TRANSFERS, "links": LINKS}
_TIMES = ("Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)", "Idle Time(ms)")
_OWN_TIMES = ("elapse_ns", "transit_ns", "wait_ns", "synchronization_ns", "idle_ns")  # in the order of _TIMES
_TOTAL = "Total Op Info"  # the sum of the others
_MEGA = 1_000_000  # the profiler's MB


def read_communication(output: Path, problems: list[Problem]) -> Recorded:
    """The tables of one ``ASCEND_PROFILER_OUTPUT``; empty where no collectives were recorded."""
    database = output / "analysis.db"
    texts = (output / "communication.json").is_file() or (output / "communication_matrix.json").is_file()
    if database.is_file() and not texts:
        return _from_database(database, problems)
    rows = {name: Rows(schema, schema) for name, schema in _SCHEMAS.items()}
    _each(output / "communication.json", problems, partial(_times, rows["collectives"], rows["transfers"]))
    _each(output / "communication_matrix.json", problems, partial(_matrix, rows["links"]))
    return Recorded(**{name: one.frame() for name, one in rows.items()})


Note = Callable[[int | None, str, str, Any], None]  # step, kind, name and content of an entry


def _each(path: Path, problems: list[Problem], note: Note) -> None:
    """Note every entry of a file; those that are not understood are a problem."""
    if not path.is_file():
        return
    try:
        entries = list(_entries(json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, AttributeError) as error:
        problems.append(Problem(path, say("it cannot be read ({reason})", reason=error)))
        return
    if bad := sum(not _understood(note, *entry) for entry in entries):
        problems.append(Problem(path, say("{number} entries are malformed", number=bad)))


def _understood(note: Note, step: int | None, kind: str, name: str, content: Any) -> bool:
    try:
        note(step, kind, name, content)
    except (TypeError, ValueError, KeyError, AttributeError):
        return False
    return True


def _entries(whole: dict[str, Any]) -> Iterator[tuple[int | None, str, str, Any]]:
    for step, kinds in whole.items():
        digits = re.search(r"\d+", step)
        for kind, entries in kinds.items():
            for name, content in entries.items():
                yield int(digits.group()) if digits else None, kind, name, content


def _times(collectives: Rows, transfers: Rows, step: int | None, kind: str, name: str, content: Any) -> None:
    if name == _TOTAL:
        return
    operation, _, group = name.partition("@")
    times = content["Communication Time Info"]
    start = round(float(times["Start Timestamp(us)"]) * 1000)
    collectives.add((step, kind, operation, group, start, *(_nanoseconds(times.get(one)) for one in _TIMES)))
    for transport, one in content.get("Communication Bandwidth Info", {}).items():
        size, time = float(one.get("Transit Size(MB)", 0)), one.get("Transit Time(ms)", 0)
        if size:
            transfers.add((step, operation, group, transport, round(size * _MEGA), _nanoseconds(time)))


def _matrix(links: Rows, step: int | None, _kind: str, name: str, content: Any) -> None:
    selection, _, group = name.partition("@")
    for pair, one in content.items():
        source, _, destination = pair.partition("-")
        size, time = round(float(one["Transit Size(MB)"]) * _MEGA), _nanoseconds(one["Transit Time(ms)"])
        links.add((step, selection, group, int(source), int(destination), one["Transport Type"], size, time))


def _nanoseconds(milliseconds: Any) -> int | None:
    return None if milliseconds is None else round(float(milliseconds) * 1e6)


def _from_database(path: Path, problems: list[Problem]) -> Recorded:
    step = "CAST(replace(t.step, 'step', '') AS INTEGER)"
    times = {name: f"CAST(round(t.{name[:-3]}_time * 1e6) AS INTEGER)" for name in _OWN_TIMES}
    size, time = "CAST(round(t.transit_size * 1e6) AS INTEGER)", "CAST(round(t.transit_time * 1e6) AS INTEGER)"
    operation = {"step": step, "name": "t.hccl_op_name", "group": "t.group_name"}
    wanted: dict[str, tuple[str, dict[str, str | None], str]] = {
        "collectives": (
            "CommAnalyzerTime",
            {
                "step": step,
                "kind": "t.type",
                "name": "t.hccl_op_name",
                "group": "t.group_name",
                "start_ns": "CAST(round(t.start_timestamp * 1000) AS INTEGER)",
                **times,
            },
            f"WHERE t.hccl_op_name != '{_TOTAL}'",
        ),
        "transfers": (
            "CommAnalyzerBandwidth",
            {**operation, "transport": "t.transport_type", "bytes": f"max({size})", "time_ns": f"max({time})"},
            f"WHERE t.transit_size > 0 AND t.hccl_op_name != '{_TOTAL}' "
            "GROUP BY t.step, t.hccl_op_name, t.group_name, t.transport_type",
        ),
        "links": (
            "CommAnalyzerMatrix",
            {
                "step": step,
                "selection": "t.hccl_op_name",
                "group": "t.group_name",
                "source": "CAST(t.src_rank AS INTEGER)",
                "destination": "CAST(t.dst_rank AS INTEGER)",
                "transport": "t.transport_type",
                "bytes": size,
                "time_ns": time,
            },
            "",
        ),
    }
    try:
        with closing(Database(path, problems)) as database:
            read = {
                name: database.read(table, columns, _SCHEMAS[name], joined)
                for name, (table, columns, joined) in wanted.items()
            }
            return Recorded(**read)
    except sqlite3.Error as error:
        problems.append(Problem(path, say("it cannot be read ({reason})", reason=error)))
        return Recorded(**{name: empty(schema) for name, schema in _SCHEMAS.items()})
