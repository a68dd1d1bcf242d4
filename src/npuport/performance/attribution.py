"""Which operator and which nn.Module launched each kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from npuport.performance.findings.base import Context
from npuport.performance.tables import Category

MODULE = "nn.Module: "
# Wrappers that one run has and another has not; their modules are the same ones.
WRAPPER = re.compile(r"^(DistributedDataParallel|DataParallel|FullyShardedDataParallel|OptimizedModule|Float16Module)_")
# Ranges that the framework marks, as operators in older traces too, rather than operators.
_RANGES = r"^ProfilerStep#|^Optimizer\.|^enumerate\(DataLoader\)|^## "
_ENGINE = "autograd::engine::evaluate_function: "  # autograd's call of a backward operator, which follows inside


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a model something was launched: ``module`` such as "GPT_0/Block_2/Linear_9" ("" where no module is
    known), ``operator`` the outermost one inside of that module, ``sequence`` the number of a backward operator."""

    module: str
    operator: str
    sequence: int | None


def attributed(context: Context) -> pl.DataFrame:
    """``context.kernels`` with ``module`` and ``operator``; what the backward launches has those of its forward.

    Names of backward operators change between releases of PyTorch.
    """
    kernels = context.kernels
    events = context.events.filter(
        pl.col("name").str.starts_with(MODULE)
        | ((pl.col("category") == Category.OPERATOR) & ~pl.col("name").str.contains(_RANGES))
    ).sort("start_ns", "end_ns", descending=[False, True])
    threads = {key[0]: rows for key, rows in events.partition_by("thread", as_dict=True).items()}
    launched = kernels.select("id", "launch_thread", "launch_ns").drop_nulls()
    places = _places(threads, [(thread, at) for _, thread, at in launched.iter_rows()])
    makers = context.forward_operators
    made_at = _places(threads, [(row["thread"], row["start_ns"]) for row in makers.values()])
    forward = dict(zip(makers, made_at, strict=True))
    known = {}
    for (number, _, _), place in zip(launched.iter_rows(), places, strict=True):
        origin = forward.get(place.sequence, place) if place.sequence is not None and not place.module else place
        known[number] = (origin.module, origin.operator or place.operator)
    rows = [known.get(number, ("", "")) for number in kernels["id"].to_list()]
    return kernels.with_columns(
        pl.Series("module", [module for module, _ in rows], dtype=pl.String),
        pl.Series("operator", [operator for _, operator in rows], dtype=pl.String),
    )


def _places(threads: dict[object, pl.DataFrame], asked: Sequence[tuple[int, int]]) -> list[Place]:
    """The place of each (thread, time), in the order in which they were asked for."""
    by_thread: dict[int, list[int]] = {}
    for position, (thread, _) in enumerate(asked):
        by_thread.setdefault(thread, []).append(position)
    found: list[Place] = [Place("", "", None)] * len(asked)
    for thread, positions in by_thread.items():
        rows = threads.get(thread)
        if rows is None:
            continue
        positions.sort(key=lambda position: asked[position][1])
        times = [asked[position][1] for position in positions]
        for position, place in zip(positions, _along(rows, times), strict=True):
            found[position] = place
    return found


def _along(rows: pl.DataFrame, times: Sequence[int]) -> Iterator[Place]:
    """The place at each time, by one pass over the events of a thread; both in order of time."""
    columns = rows.select("name", "start_ns", "end_ns", "sequence", "forward_thread").iter_rows()
    following = next(columns, None)
    open_events: list[tuple[str, int, int | None]] = []
    for time in times:
        while following is not None and following[1] <= time:
            name, start, end, sequence, forward_thread = following
            while open_events and open_events[-1][1] <= start:
                open_events.pop()
            open_events.append((name, end, sequence if forward_thread else None))
            following = next(columns, None)
        while open_events and open_events[-1][1] <= time:
            open_events.pop()
        yield _place(open_events)


def _place(open_events: Sequence[tuple[str, int, int | None]]) -> Place:
    modules = [position for position, (name, _, _) in enumerate(open_events) if name.startswith(MODULE)]
    names = [open_events[position][0].removeprefix(MODULE) for position in modules]
    inside = open_events[modules[-1] + 1 if modules else 0 :]
    sequence = next((number for _, _, number in reversed(open_events) if number is not None and number >= 0), None)
    return Place(
        "/".join(name for name in names if not WRAPPER.match(name)),
        inside[0][0].removeprefix(_ENGINE) if inside else "",
        sequence,
    )
