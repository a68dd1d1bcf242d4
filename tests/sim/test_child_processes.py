"""``with npuport.sim.child_processes()``: this process stays as it is, those that it starts do not."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from npuport.sim import SimOptions, SimulationUnavailable, child_processes, is_active

pytestmark = pytest.mark.sim
GIB = 1 << 30
_held = []


@pytest.fixture(scope="module", autouse=True)
def available() -> None:
    try:
        with child_processes():
            pass
    except SimulationUnavailable as missing:
        pytest.skip(str(missing))


def hold_a_gibibyte() -> float:
    import torch

    _held.append(torch.ones(GIB, dtype=torch.uint8, device="npu:1"))
    return _held[0][-1].item()


def held_memory() -> tuple[int, int]:
    import torch

    free, total = torch.npu.mem_get_info(1)
    return torch.npu.device_count(), total - free


def test_spawned_functions_share_the_devices() -> None:
    before = dict(os.environ)
    with child_processes(SimOptions(devices=2)):
        one, other = (ProcessPoolExecutor(1, get_context("spawn")) for _ in range(2))
        with one, other:
            assert one.submit(hold_a_gibibyte).result() == 1
            count, held = other.submit(held_memory).result()
    assert (count, dict(os.environ)) == (2, before)
    assert GIB <= held < 2 * GIB
    assert not is_active()


def test_the_environment_comes_back_after_an_error() -> None:
    before = dict(os.environ)
    with pytest.raises(ZeroDivisionError), child_processes():
        assert is_active()
        _ = 1 / 0
    assert dict(os.environ) == before
