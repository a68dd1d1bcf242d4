"""Transfers that are slower than they need be: below what the link can do, too small, or sent again."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from npuport.facts import link_bandwidth, performance_fact
from npuport.findings import Sentence, say
from npuport.performance.findings.base import Confidence, Context, PerformanceFinding, milliseconds
from npuport.performance.intervals import Spans, intersect, spans_of, total
from npuport.performance.metrics import bandwidths

_GOOD = 0.8  # of the nominal bandwidth: what large transfers should reach
_LARGE = {"RDMA": 1_000_000}  # bytes of one collective over a transport; others as below
_LARGE_INSIDE = 16_000_000
_TIMEOUT_NS = 4_000_000_000  # after about which a network card sends again what was not acknowledged


def below_nominal(context: Context) -> Iterator[PerformanceFinding]:
    """A transport that moves less than 0.8 of what its links can do; only where the chip is known."""
    moved = bandwidths(context, context.profile.chip)
    whole = sum(one.time_ns for one in moved)
    for one in moved:
        limit = link_bandwidth(context.profile.chip, one.transport) if context.profile.chip else None
        if limit is None or one.rate >= _GOOD * limit.bytes_per_second:
            continue
        lost = (1 - one.rate / limit.bytes_per_second) * one.time_ns / whole
        yield _finding(
            context,
            context.in_steps(context.timeline.transmit),
            lost,
            code="NT203",
            name="link-below-its-bandwidth",
            seen=say(
                "{transport} moves {rate} GB/s, nominal are {nominal} GB/s",
                transport=one.transport,
                rate=f"{one.rate / 1e9:,.1f}",
                nominal=f"{limit.bytes_per_second / 1e9:,.4g}",
            ),
            fix=say(
                "compare with hccl_test on idle machines; then larger buckets, and less computing at the same time"
            ),
            check=say("the bandwidth is above 0.8 of the nominal one"),
            fact="link-bandwidth",
        )


def small_transfers(context: Context) -> Iterator[PerformanceFinding]:
    """Collectives that move little take longer for each byte than the large ones of the same profile."""
    table = context.profile.transfers.with_columns(pl.col("transport", "name").cast(pl.String))
    for (transport,), rows in (
        table.filter(pl.col("time_ns") > 0).sort("transport").group_by("transport", maintain_order=True)
    ):
        large = pl.col("bytes") >= _LARGE.get(str(transport), _LARGE_INSIDE)
        big, small = rows.filter(large), rows.filter(~large)
        if transport in ("SDMA", "LOCAL") or big.is_empty() or small.is_empty():
            continue  # SDMA is the sum of others
        (size, time), (small_size, small_time) = (_sums(one) for one in (big, small))
        rate = size / time
        lost = 1 - small_size / rate / small_time
        if lost <= 0:
            continue
        yield _finding(
            context,
            _transmit_of(context, small),
            lost,
            code="NT204",
            name="small-transfers",
            seen=say(
                "{count} collectives move little over {transport} in a step, {slow} GB/s where large ones reach {fast}",
                count=f"{small.height / len(context.splits):,.3g}",
                transport=str(transport),
                slow=f"{small_size / small_time:,.1f}",
                fast=f"{rate:,.1f}",
            ),
            fix=say("let fewer collectives move more: larger buckets (bucket_cap_mb), gradient accumulation"),
            check=say("fewer collectives, of 16 MB or more inside a node and 1 MB or more between nodes"),
            fact="transfer-sizes",
        )


def sent_again(context: Context) -> Iterator[PerformanceFinding]:
    """Transfers between machines that take so long that a card must have sent again."""
    table = context.profile.transfers.with_columns(pl.col("transport", "name").cast(pl.String))
    slow = table.filter((pl.col("transport") == "RDMA") & (pl.col("time_ns") >= _TIMEOUT_NS))
    if slow.is_empty():
        return
    yield _finding(
        context,
        _transmit_of(context, slow),
        1.0,
        code="NT205",
        name="sent-again-over-the-network",
        seen=say(
            "{count} collectives take {time} ms over RDMA, longer than the time after which cards send again",
            count=slow.height,
            time=milliseconds(int(slow["time_ns"].sum())),
        ),
        fix=say(
            "look for lost packets: flow control (PFC) of switches and cards, HCCL_RDMA_TC and HCCL_RDMA_SL, "
            "hccn_tool -stat"
        ),
        check=say("no collective takes 4 s over RDMA"),
        fact="rdma-retransmission",
    )


def _sums(transfers: pl.DataFrame) -> tuple[int, int]:
    """Bytes, and the nanoseconds in which they moved."""
    return sum(transfers["bytes"].to_list()), sum(transfers["time_ns"].to_list())


def _transmit_of(context: Context, transfers: pl.DataFrame) -> Spans:
    """When the collectives of these transfers moved data."""
    names = transfers["name"].unique().to_list()
    table = context.profile.communication.with_columns(pl.col("name", "kind").cast(pl.String))
    operations = spans_of(table.filter((pl.col("kind") == "operation") & pl.col("name").is_in(names)))
    moving = context.timeline.transmit
    return context.in_steps(intersect(operations, moving) if moving else operations)


def _finding(
    context: Context,
    spans: Spans,
    lost: float,
    *,
    code: str,
    name: str,
    seen: Sentence,
    fix: Sentence,
    check: Sentence,
    fact: str,
) -> PerformanceFinding:
    """The part ``lost`` of the time of ``spans``, and of what no computing hides of it."""
    free = context.without_computing(spans)
    return PerformanceFinding(
        code=code,
        name=name,
        seen=seen,
        fix=fix,
        check=check,
        cost_ns=context.per_step(int(lost * total(spans))),
        gain_ns=context.per_step(int(lost * total(free))),
        confidence=Confidence.MEDIUM,
        spans=free,
        basis=performance_fact(fact).basis,
    )
