"""Finding the profiles under a path, and the reader of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from npuport.errors import UserError
from npuport.findings import say
from npuport.performance.reading.kineto import read_kineto
from npuport.performance.reading.torch_npu_db import read_database
from npuport.performance.reading.torch_npu_text import read_text, read_unparsed
from npuport.performance.tables import Problem, Profile

Reader = Callable[[Path], Profile]

_KINETO = re.compile(r"\.pt\.trace\.json(\.gz)?$|^trace.*\.json(\.gz)?$")
_OUTPUT = "ASCEND_PROFILER_OUTPUT"


def profiles_under(paths: Sequence[Path]) -> list[tuple[Path, Reader]]:
    """Each profile once, in the order of the paths and of the names below them.

    Raises:
        UserError: a path does not exist, or holds no profile.
    """
    found: dict[Path, Reader] = {}
    for path in paths:
        if not path.exists():
            raise UserError("{path} does not exist.", path=path)
        below = dict(_below(path))
        if not below:
            raise UserError(
                "{path} holds no profile: neither a result of torch_npu's profiler (…_ascend_pt) nor a trace of "
                "PyTorch's (….pt.trace.json).",
                path=path,
            )
        found |= below
    return [(path, partial(_whole, read)) for path, read in found.items()]


def _whole(read: Reader, path: Path) -> Profile:
    """The profile without rows that end before they begin: nothing can be said of the time they took."""
    profile = read(path)
    tables: dict[str, pl.DataFrame] = {}
    for name in ("events", "kernels", "communication"):
        table: pl.DataFrame = getattr(profile, name)
        if reversed_rows := table.filter(pl.col("end_ns") < pl.col("start_ns")).height:
            kept = table.filter(pl.col("end_ns") >= pl.col("start_ns")).drop("id").with_row_index("id")
            reason = say("{number} events end before they begin", number=reversed_rows)
            tables[name] = kept
            profile = replace(profile, problems=(*profile.problems, Problem(profile.path, reason)))
    return replace(
        profile,
        events=tables.get("events", profile.events),
        kernels=tables.get("kernels", profile.kernels),
        communication=tables.get("communication", profile.communication),
    )


def _below(path: Path) -> Iterator[tuple[Path, Reader]]:
    if path.is_file():
        yield from _file(path)
        return
    if path.name == _OUTPUT:
        yield from _result(path)
        return
    for one in sorted([path, *path.rglob("*")]):
        if one.name == _OUTPUT and one.is_dir():
            yield from _result(one)
        elif one.name.endswith("_ascend_pt") and not (one / _OUTPUT).is_dir():
            yield one, read_unparsed
        elif _OUTPUT not in one.relative_to(path).parts and _KINETO.search(one.name):
            yield one, read_kineto


def _result(output: Path) -> Iterator[tuple[Path, Reader]]:
    """A result folder. Since 2025 the text comes with a database of the same; the text says more about kernels."""
    databases = sorted(output.glob("ascend_pytorch_profiler*.db"))
    has_text = any((output / name).is_file() for name in ("trace_view.json", "kernel_details.csv"))
    if has_text or not databases:
        yield output.parent, read_text
    else:
        yield from ((database, read_database) for database in databases)


def _file(path: Path) -> Iterator[tuple[Path, Reader]]:
    if path.suffix == ".db":
        yield path, read_database
    elif path.name == "trace_view.json" and path.parent.name == _OUTPUT:
        yield path.parent.parent, read_text
    elif path.name.endswith((".json", ".json.gz")):
        yield path, read_kineto
