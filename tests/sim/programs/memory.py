"""Memory is counted per device against the memory of the chip."""

from __future__ import annotations

import os

import checks
import torch

GIB = 1 << 30


def take(gib: int, device: str = "npu:0") -> torch.Tensor:
    return torch.empty(gib * GIB, dtype=torch.uint8, device=device)


def check_free_and_total() -> None:
    torch.npu.empty_cache()
    free, total = torch.npu.mem_get_info(0)
    held = take(3)
    assert total == 64 * GIB
    assert free - torch.npu.mem_get_info(0)[0] >= 3 * GIB
    assert torch.npu.memory_allocated(0) >= 3 * GIB
    del held
    torch.npu.empty_cache()
    assert torch.npu.mem_get_info(0)[0] == free


def check_more_than_the_chip_has() -> None:
    checks.raises(torch.OutOfMemoryError, "64.00 GiB total capacity", lambda: take(70))


def check_devices_are_counted_apart() -> None:
    held = [take(20, "npu:1") for _ in range(3)]
    checks.raises(torch.OutOfMemoryError, "NPU 1", lambda: take(20, "npu:1"))
    other = take(20, "npu:0")
    assert torch.npu.memory_allocated(1) >= 60 * GIB and other.device.index == 0
    del held, other
    torch.npu.empty_cache()


def check_peak_is_kept() -> None:
    torch.npu.empty_cache()
    torch.npu.reset_peak_memory_stats()
    before = torch.npu.max_memory_allocated()
    held = take(1)
    del held
    assert torch.npu.max_memory_allocated() - before >= GIB
    assert "Allocated memory" in torch.npu.memory_summary()


def check_a_repeated_large_call_gives_the_same() -> None:
    """Its results are written to the device at once, and nothing else counts as memory of the device."""
    x = torch.randn(300, 400, device="npu:0")
    calls = (lambda: x.T + 1, lambda: x @ x.T, lambda: x.softmax(1), lambda: x.max(1).values, x.T.exp)
    for call in calls:
        first, second, third = call(), call(), call()
        assert torch.equal(first, second) and torch.equal(second, third)
        assert first.stride() == third.stride() and second.data_ptr() != third.data_ptr()
    size = x.exp().nbytes
    before = torch.npu.memory_allocated(0)
    torch.npu.reset_peak_memory_stats(0)
    held = x.exp()
    assert 0 <= torch.npu.max_memory_allocated(0) - before - size < 4096 and held.shape == x.shape


def check_a_repeated_large_call_minds_what_changed() -> None:
    x = torch.arange(120_000, dtype=torch.int32, device="npu:0")
    halves = [x / 2 for _ in range(2)]
    assert {half.dtype for half in halves} == {torch.float32}
    torch.set_default_dtype(torch.float16)
    try:
        assert (x.narrow(0, 0, 70_000) / 2).dtype == (x / 2).dtype == torch.float16
    finally:
        torch.set_default_dtype(torch.float32)
    even = [x[x % count == 0].numel() for count in (2, 3, 3)]
    assert even == [60_000, 40_000, 40_000]
    matrix = x.reshape(300, 400).float()
    for one in (matrix, matrix.T, matrix[:, ::2], matrix.T):
        assert torch.equal((one * 2).cpu(), one.cpu() * 2)


def check_large_reservations_do_not_hinder_fork() -> None:
    held = take(60)
    child = os.fork()
    if child == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    del held
    torch.npu.empty_cache()


if __name__ == "__main__":
    checks.run(globals())
