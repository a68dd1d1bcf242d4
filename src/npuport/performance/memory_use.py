"""Device memory: the peak of PyTorch's allocator, and what is held at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from npuport.performance.attribution import MODULE, WRAPPER
from npuport.performance.findings.base import Context
from npuport.performance.tables import Profile

_ALLOCATORS = ("PTA", "PyTorch")  # PyTorch's own, as torch_npu and as Kineto call it
_LOOKED_UP = 500  # largest pieces of memory whose origin is looked up


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """The moment at which a device holds most. ``reserved`` is what the allocator had from the driver at that moment,
    ``most_reserved`` the most it ever had; all in bytes, None where not recorded."""

    device: int | None
    time_ns: int
    allocated: int
    reserved: int | None
    most_reserved: int | None

    @property
    def unused(self) -> int | None:
        """Reserved, and in no tensor: pieces of blocks that no request fits into, or blocks kept for later."""
        return None if self.reserved is None else max(self.reserved - self.allocated, 0)


@dataclass(frozen=True, slots=True)
class Held:
    """Memory that is held at the peak and comes from one place. ``module`` and ``line`` are empty where unknown."""

    operator: str
    module: str
    line: str
    bytes: int
    pieces: int


def memory_peak(profile: Profile) -> MemoryPeak | None:
    """The peak of the device that holds most; None where the profiler did not record memory."""
    component = pl.col("component").cast(pl.String).is_in(_ALLOCATORS)
    rows = profile.memory.filter(component & pl.col("allocated_bytes").is_not_null())
    if rows.is_empty():
        return None
    top = rows.sort("allocated_bytes", "time_ns", descending=[True, False]).row(0, named=True)
    same = rows.filter(pl.col("device").eq_missing(top["device"]))
    most: Any = same["reserved_bytes"].max()
    return MemoryPeak(top["device"], top["time_ns"], top["allocated_bytes"], top["reserved_bytes"], most)


def held_at(context: Context, peak: MemoryPeak) -> list[Held]:
    """What the allocations recorded by the profiler hold at the peak, the largest first.

    What was allocated before the profiler started is not there. Beyond the largest 500 pieces the origin is the
    operator alone.
    """
    kept = context.profile.allocations.filter(
        pl.col("device").eq_missing(peak.device)
        & (pl.col("allocated_ns") <= peak.time_ns)
        & (pl.col("released_ns").is_null() | (pl.col("released_ns") > peak.time_ns))
    ).with_columns(pl.col("name").cast(pl.String))
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    for key, size in _origins(context, kept.sort("bytes", descending=True)):
        whole, pieces = sums.get(key, (0, 0))
        sums[key] = (whole + size, pieces + 1)
    return sorted((Held(*key, *both) for key, both in sums.items()), key=lambda one: (-one.bytes, one.operator))


def _origins(context: Context, kept: pl.DataFrame) -> Iterator[tuple[tuple[str, str, str], int]]:
    """(operator, module, line) and the bytes of each piece."""
    events = context.events.with_row_index("row").select("row", "name", "start_ns", "end_ns")
    largest = kept.head(_LOOKED_UP).sort("allocated_ns")
    joined = largest.join_asof(
        events,
        left_on="allocated_ns",
        right_on="start_ns",
        by="name",
        check_sortedness=False,  # both are sorted; Polars cannot see it within groups
    )
    for name, size, at, row, end in joined.select("name", "bytes", "allocated_ns", "row", "end_ns").iter_rows():
        if row is None or end < at:
            yield (name, "", ""), size
            continue
        event = context.events.row(row, named=True)
        yield (name, _module(context, event), next(iter(context.lines(event)), "")), size
    for name, size in kept.slice(_LOOKED_UP).select("name", "bytes").iter_rows():
        yield (name, "", ""), size


def _module(context: Context, event: dict[str, Any]) -> str:
    """``GPT_0/Block_2/Linear_9``: the modules around an event, from the outside in; around its forward for a
    backward's."""
    around = context.around(event)
    names = around["name"].to_list()
    modules = [one.removeprefix(MODULE) for one in reversed(names) if one.startswith(MODULE)]
    if not modules:
        made = (context.forward_operators.get(number) for number in around["sequence"].drop_nulls().to_list())
        forward = next((one for one in made if one is not None and one["start_ns"] < event["start_ns"]), None)
        return _module(context, forward) if forward else ""
    return "/".join(one for one in modules if not WRAPPER.match(one))
