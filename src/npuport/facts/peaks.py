"""What chips and their links can do at most: the measure of what a profile shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.facts.chips import chip
from npuport.findings import Basis


@dataclass(frozen=True)
class Peak:
    """Floating-point operations per second of matrix products in a data type such as "bfloat16", dense."""

    chip: str
    dtype: str
    flops: float
    basis: Basis


@dataclass(frozen=True)
class LinkBandwidth:
    """Nominal bytes per second of one link of a family of chips, such as "A2", over a transport such as "HCCS"."""

    family: str
    transport: str
    bytes_per_second: float
    basis: Basis


@dataclass(frozen=True)
class MemoryBandwidth:
    """Nominal bytes per second of a chip's memory."""

    chip: str
    bytes_per_second: float
    basis: Basis


@cache
def all_peaks() -> tuple[Peak, ...]:
    """Every entry, in the order of the table."""
    return tuple(Peak(row["chip"], row["dtype"], float(row["tflops"]) * 1e12, basis(row)) for row in rows("peaks"))


@cache
def all_link_bandwidths() -> tuple[LinkBandwidth, ...]:
    """Every entry, in the order of the table."""
    return tuple(
        LinkBandwidth(row["family"], row["transport"], float(row["gigabytes_per_second"]) * 1e9, basis(row))
        for row in rows("link_bandwidths")
    )


def peak(name: str, dtype: str) -> Peak | None:
    """The peak of a chip; of GPUs, whose drivers write longer names, the entry that is part of the name.

    None where no source for it is known.
    """
    known = chip(name)
    for one in all_peaks():
        matches = one.chip == known.name if known else one.chip.casefold() in name.casefold()
        if matches and one.dtype == dtype:
            return one
    return None


def link_bandwidth(name: str, transport: str) -> LinkBandwidth | None:
    """The nominal bandwidth of a chip's links; None where no source for it is known."""
    known = chip(name)
    wanted = (known.family if known else None, transport.upper())
    return next((one for one in all_link_bandwidths() if (one.family, one.transport) == wanted), None)


@cache
def all_memory_bandwidths() -> tuple[MemoryBandwidth, ...]:
    """Every entry, in the order of the table."""
    return tuple(
        MemoryBandwidth(row["name"], float(row["gigabytes_per_second"]) * 1e9, basis(row))
        for row in rows("memory_bandwidths")
    )


def memory_bandwidth(name: str) -> MemoryBandwidth | None:
    """The nominal bandwidth of a chip's memory; None where no source for it is known."""
    known = chip(name)
    return next((one for one in all_memory_bandwidths() if known is not None and one.chip == known.name), None)
