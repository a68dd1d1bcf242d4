"""The metrics of `npuport perf analyze`: a line of text, the places that hold memory, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuport.performance.findings.base import PerformanceFinding
    from npuport.performance.memory_use import MemoryPeak
    from npuport.performance.metrics import Bandwidth, Metrics

_SHOWN = 10  # places that hold memory


def metrics_line(metrics: Metrics) -> str:
    """What is known, in this order: throughput, step time, scaling, memory, bandwidth, efficiency, FLOP/s, use."""
    return " · ".join(_words(metrics))


def _words(metrics: Metrics) -> Iterator[str]:
    from npuport.report.language import translate

    if metrics.steps_per_second is not None:
        yield translate("{number} steps/s", number=_rounded(metrics.steps_per_second))
    if metrics.samples_per_second is not None:
        yield translate("{number} samples/s", number=_rounded(metrics.samples_per_second))
    if metrics.tokens_per_second is not None:
        yield translate("{number} tokens/s", number=_rounded(metrics.tokens_per_second))
    if metrics.steps > 1:
        yield translate(
            "steps of {shortest} to {longest} ms (±{deviation})",
            shortest=f"{metrics.shortest_ns / 1e6:,.1f}",
            longest=f"{metrics.longest_ns / 1e6:,.1f}",
            deviation=f"{metrics.deviation_ns / 1e6:,.1f}",
        )
    if metrics.communication_share is not None:
        yield translate("only communication {share} of the step", share=f"{metrics.communication_share:.1%}")
    if metrics.memory:
        yield _memory(metrics.memory)
    yield from (_bandwidth(one) for one in metrics.bandwidths)
    yield from _computing(metrics)


def _memory(peak: MemoryPeak) -> str:
    from npuport.report.language import translate

    allocated = f"{peak.allocated / 1e9:,.2f}"
    if peak.reserved is None or peak.most_reserved is None:
        return translate("memory at its peak {allocated} GB", allocated=allocated)
    return translate(
        "memory at its peak {allocated} GB, reserved {reserved} GB",
        allocated=allocated,
        reserved=f"{peak.reserved / 1e9:,.2f}",
    )


def _bandwidth(one: Bandwidth) -> str:
    from npuport.report.language import translate

    rate = f"{one.rate / 1e9:,.1f}"
    if one.nominal is None:
        return translate("{transport} {rate} GB/s", transport=one.transport, rate=rate)
    return translate(
        "{transport} {rate} of {nominal} GB/s",
        transport=one.transport,
        rate=rate,
        nominal=f"{one.nominal / 1e9:,.4g}",
    )


def _computing(metrics: Metrics) -> Iterator[str]:
    from npuport.report.language import translate
    from npuport.report.text import printable

    if metrics.efficiency is not None and metrics.peak_flops is not None:
        yield translate(
            "MFU {efficiency} of {peak} TFLOP/s ({chip}, {dtype})",
            efficiency=f"{metrics.efficiency:.1%}",
            peak=_rounded(metrics.peak_flops / 1e12),
            chip=printable(metrics.chip),
            dtype=printable(metrics.dtype),
        )
    if metrics.flops_per_second is not None:
        yield translate("{number} TFLOP/s", number=_rounded(metrics.flops_per_second / 1e12)) + (
            "" if metrics.peak_flops else " " + _no_peak(metrics)
        )
    if metrics.uncounted_attention:
        yield translate("attention not counted in it, {count} x", count=metrics.uncounted_attention)
    if metrics.computing_share is not None:
        yield translate("computing {share} of the step", share=f"{metrics.computing_share:.1%}")


def _no_peak(metrics: Metrics) -> str:
    from npuport.report.language import translate
    from npuport.report.text import printable

    if not metrics.chip:
        return translate("(no MFU: --chip names the chip)")
    if not metrics.dtype:
        return translate("(no MFU: --dtype names the type of matrix products)")
    return translate(
        "(no MFU: no peak is known of {chip} in {dtype})",
        chip=printable(metrics.chip),
        dtype=printable(metrics.dtype),
    )


def saved_memory(finding: PerformanceFinding) -> str:
    """What a finding could gain in memory; empty for those that cost time."""
    from npuport.report.language import translate

    return translate("up to -{size} GB", size=f"{finding.saved_bytes / 1e9:,.2f}") if finding.saved_bytes else ""


def memory_lines(metrics: Metrics) -> Iterator[str]:
    """The places that hold most at the peak."""
    from npuport.report.language import translate
    from npuport.report.text import printable

    if not metrics.held:
        return
    yield "  " + translate("held at the peak of memory, of what was allocated while profiling:")
    for one in metrics.held[:_SHOWN]:
        place = f"{Path(one.line).name}  " if one.line else ""
        yield f"    {one.bytes / 1e6:>10,.1f} MB  {one.pieces:>5} x  {printable(place + one.operator)}  " + printable(
            one.module
        )


def metrics_json(metrics: Metrics) -> dict[str, Any]:
    """All of it; times in nanoseconds, sizes in bytes, rates per second."""
    document = asdict(metrics)
    if metrics.memory:
        document["memory"]["unused"] = metrics.memory.unused
    for one, written in zip(metrics.bandwidths, document["bandwidths"], strict=True):
        written["rate"] = one.rate
    return {**document, "flops_per_second": metrics.flops_per_second, "efficiency": metrics.efficiency}


def _rounded(number: float) -> str:
    return f"{number:,.4g}" if number < 1000 else f"{number:,.0f}"
