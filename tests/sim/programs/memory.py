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
