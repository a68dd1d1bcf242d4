"""Findings on links and on fragmented memory, on profiles made for them."""

from __future__ import annotations

from typing import Any

import pytest
from made_profiles import Row, collective, kernel, made, table
from real_profiles import ALEXNET, needs_profiles

from npuport.performance.analysis import analyse
from npuport.performance.findings.base import Context, PerformanceFinding
from npuport.performance.findings.registry import find
from npuport.performance.metrics import Asked
from npuport.performance.tables import TRANSFERS


def found(transfers: list[Row] | None = None, **profile: Any) -> dict[str, PerformanceFinding]:
    rows = table(transfers or [], TRANSFERS)
    findings = {one.code: one for one in find(Context(made(transfers=rows, **profile)))}
    for one in findings.values():
        assert 0 <= one.gain_ns <= one.cost_ns
    return findings


def moved(name: str, size: int, time: int, transport: str = "HCCS") -> Row:
    return {"name": name, "transport": transport, "bytes": size, "time_ns": time}


MOVING = [collective(0, 600), collective(0, 600, "transmit")]
BUSY = [kernel(0, 200)]


def test_a_link_below_its_bandwidth_needs_a_known_chip() -> None:
    slow = [moved("allReduce", 1400, 100)]  # 14 GB/s of 28
    rows: dict[str, Any] = {"communication": MOVING, "kernels": BUSY}
    one = found(slow, **rows, chip="Ascend910B2")["NT203"]
    assert (one.cost_ns, one.gain_ns) == (300, 200)
    assert "NT203" not in found(slow, **rows)
    assert "NT203" not in found([moved("allReduce", 2300, 100)], **rows, chip="Ascend910B2")
    assert "NT203" not in found(slow, **rows, chip="Ascend950PR_9579")  # no bandwidth is known


def test_small_transfers_are_held_against_large_ones() -> None:
    communication = [
        collective(0, 200, name="large"),
        collective(200, 600, name="small"),
        collective(0, 600, "transmit"),
    ]
    large = moved("large", 20_000_000, 1_000_000)
    small = moved("small", 1_000_000, 200_000)  # a quarter of the rate
    one = found([large, small], communication=communication, kernels=[kernel(0, 300)])["NT204"]
    assert (one.cost_ns, one.gain_ns) == (300, 225)
    assert "5.0 GB/s where large ones reach 20.0" in str(one.seen)
    assert "NT204" not in found([small], communication=communication)
    assert "NT204" not in found([large, moved("small", 4_000_000, 200_000)], communication=communication)
    summed = [moved("large", 20_000_000, 1_000_000, "SDMA"), moved("small", 1_000_000, 200_000, "SDMA")]
    assert "NT204" not in found(summed, communication=communication)


@pytest.mark.parametrize(
    ("time", "transport", "seen"), [(4 * 10**9, "RDMA", True), (10**9, "RDMA", False), (5 * 10**9, "HCCS", False)]
)
def test_sent_again(time: int, transport: str, seen: bool) -> None:
    end = 10 * 10**9
    rows: dict[str, Any] = {"communication": [collective(0, time)], "steps": [(0, 0, end)]}
    findings = found([moved("allReduce", 1000, time, transport)], **rows)
    assert ("NT205" in findings) == seen
    if seen:
        assert findings["NT205"].gain_ns == time


@pytest.mark.parametrize(
    ("allocated", "reserved", "seen"),
    [(8 * 2**30, 10 * 2**30, True), (8 * 2**30, 9 * 2**30, False), (50 * 2**30, 52 * 2**30, False), (1, None, False)],
)
def test_fragmented_memory(allocated: int, reserved: int | None, seen: bool) -> None:
    memory = [
        {"time_ns": 100, "component": "PTA", "allocated_bytes": allocated, "reserved_bytes": reserved, "device": 0},
        # Later nothing is used: that is no fragmentation.
        {"time_ns": 900, "component": "PTA", "allocated_bytes": 0, "reserved_bytes": reserved, "device": 0},
    ]
    findings = found(memory=memory)
    assert ("NT402" in findings) == seen
    if seen:
        assert findings["NT402"].saved_bytes == 2 * 2**30


@needs_profiles
def test_real_profiles_have_none_of_these_but_the_slow_link() -> None:
    folder = ALEXNET / "text_level1_rank0_ascend_pt"
    new = {"NT203", "NT204", "NT205", "NT402"}
    (unnamed,) = analyse([folder])
    assert not new & {one.code for one in unnamed.weighty()}
    (named,) = analyse([folder], Asked(chip="Ascend910B2"))
    assert new & {one.code for one in named.findings} == {"NT203"}  # 15.7 of 28 GB/s
