"""The metrics of one rank: throughput, step time, scaling, memory, bandwidth, efficiency, FLOP/s and utilisation."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import pstdev

import polars as pl

from npuport.facts import link_bandwidth, peak
from npuport.performance import flops
from npuport.performance.findings.base import Context
from npuport.performance.intervals import spans_of, total
from npuport.performance.memory_use import Held, MemoryPeak, held_at, memory_peak

_MATRIX = r"(?i)matmul|mm|conv|attention"  # types of kernels that run on the matrix units
_DTYPES = {  # as torch_npu's profiler writes them
    "FLOAT16": "float16", "DT_FLOAT16": "float16", "BF16": "bfloat16", "DT_BF16": "bfloat16", "BFLOAT16": "bfloat16",
    "FLOAT": "float32", "DT_FLOAT": "float32",
}  # fmt: skip
_MAIN = 0.9  # of the time of matrix kernels: above, their data type is that of the step


@dataclass(frozen=True, slots=True)
class Asked:
    """What only the user knows; each may be missing. ``chip`` and ``dtype`` (of matrix products) go before what the
    profile says."""

    samples_per_step: float | None = None
    tokens_per_step: float | None = None
    chip: str = ""
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bytes over one transport in all steps, and the time in which they moved; ``nominal`` in bytes per second."""

    transport: str
    bytes: int
    time_ns: int
    nominal: float | None

    @property
    def rate(self) -> float:
        """Bytes per second."""
        return self.bytes / (self.time_ns / 1e9)


@dataclass(frozen=True, slots=True)
class Metrics:
    """None where the profile does not say it, as the throughput where no step is marked.

    Shares are parts of 1, rates are per second.

    ``communication_share`` is the part of a step in which only collectives run: without it the step would scale
    perfectly. ``flops`` are those of an average step, of matrix products, convolutions and known attention alone;
    ``efficiency`` is what they reach of the chip's peak over the whole step (MFU).
    """

    steps: int
    step_ns: int
    shortest_ns: int
    longest_ns: int
    deviation_ns: int
    steps_per_second: float | None
    samples_per_second: float | None
    tokens_per_second: float | None
    communication_share: float | None
    hidden_share: float | None
    memory: MemoryPeak | None
    held: tuple[Held, ...]
    bandwidths: tuple[Bandwidth, ...]
    flops: int | None
    uncounted_attention: int
    chip: str
    dtype: str
    peak_flops: float | None
    computing_share: float | None

    @property
    def flops_per_second(self) -> float | None:
        """Over the whole step, not over the kernels alone."""
        return None if self.flops is None else self.flops / (self.step_ns / 1e9)

    @property
    def efficiency(self) -> float | None:
        """Model FLOPs utilisation: FLOP/s over the peak of the chip in the data type of the matrix kernels."""
        rate = self.flops_per_second
        return None if rate is None or not self.peak_flops else rate / self.peak_flops


def metrics_of(context: Context, asked: Asked) -> Metrics | None:
    """The metrics of one profile, whose chip is the one asked for already; None where it holds no step."""
    splits = context.splits
    if not splits or not context.step_ns:
        return None
    lengths = [one.duration for one in splits]
    whole = sum(lengths)
    marked = all(one.step is not None for one in splits)
    per_second = 1e9 * len(splits) / whole if marked else None
    communication = sum(one.communication for one in splits)
    hidden = sum(one.overlapped for one in splits)
    counted = flops.count(context.events)
    chip, dtype = context.profile.chip, asked.dtype or _dtype(context)
    limit = peak(chip, dtype) if chip and dtype else None
    used = memory_peak(context.profile)
    return Metrics(
        steps=len(splits),
        step_ns=context.step_ns,
        shortest_ns=min(lengths),
        longest_ns=max(lengths),
        deviation_ns=round(pstdev(lengths)),
        steps_per_second=per_second,
        samples_per_second=per_second * asked.samples_per_step if per_second and asked.samples_per_step else None,
        tokens_per_second=per_second * asked.tokens_per_step if per_second and asked.tokens_per_step else None,
        communication_share=(communication - hidden) / whole if communication else None,
        hidden_share=hidden / whole if communication else None,
        memory=used,
        held=tuple(held_at(context, used)) if used else (),
        bandwidths=bandwidths(context, chip),
        flops=context.per_step(counted.flops) if counted and counted.flops else None,
        uncounted_attention=counted.uncounted if counted else 0,
        chip=chip,
        dtype=dtype,
        peak_flops=limit.flops if limit else None,
        computing_share=sum(one.computing for one in splits) / whole if context.kernels.height else None,
    )


def bandwidths(context: Context, chip: str) -> tuple[Bandwidth, ...]:
    """What moved over each transport; "SDMA" is the sum of those inside a node, and left out where they are told."""
    table = context.profile.transfers.with_columns(pl.col("transport").cast(pl.String)).filter(pl.col("time_ns") > 0)
    sums = table.group_by("transport").agg(pl.col("bytes").sum(), pl.col("time_ns").sum()).sort("transport")
    named = [row for row in sums.iter_rows() if row[0] != "LOCAL"]
    inside = [row for row in named if row[0] not in ("SDMA", "RDMA")]
    found = []
    for transport, size, time in named:
        if transport == "SDMA" and inside:
            continue
        nominal = link_bandwidth(chip, transport) if chip else None
        found.append(Bandwidth(transport, size, time, nominal.bytes_per_second if nominal else None))
    return tuple(found)


def _dtype(context: Context) -> str:
    """The data type of nearly all matrix kernels by time; "" where it is not recorded, or mixed."""
    matrix = context.kernels.filter(pl.col("type").str.contains(_MATRIX) & pl.col("dtypes").is_not_null())
    times: dict[str, int] = {}
    for (text,), rows in matrix.group_by("dtypes"):
        known = [_DTYPES[one] for one in str(text).split(";") if one in _DTYPES]
        name = known[0] if known else str(text)  # the gradients of a convolution have sizes before it
        times[name] = times.get(name, 0) + total(spans_of(rows))
    if not times:
        return ""
    main = max(times, key=lambda name: times[name])
    return main if times[main] >= _MAIN * sum(times.values()) else ""
