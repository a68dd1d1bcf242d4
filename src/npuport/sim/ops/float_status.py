"""Overflow flags: eight numbers, of which the first is not 0 after an overflow, on a chip that saturates.

In INF_NAN mode nothing sets a flag: infinities and NaN stay in the results. Which tensor carries the flags differs by
chip (FloatStatusKernelNpu.cpp, torch_npu-npu_{alloc,get,clear}_float_status.md).
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from npuport.sim.ops.registration import device_of_call, kernel
from npuport.sim.saturation import saturates, take_overflow_flag

_FLAGS = 8
_FIRST_WITH_OWN_RESULT = 220  # Ascend910B1 in torch_npu's numbers of chips


def _check_mode(mode: int) -> None:
    if mode not in (0, 1):
        raise RuntimeError(f"mode only supported for ORIGINAL_MODE(0) DEBUG_MODE(1), but got mode:{mode}")


@functools.cache
def _writes_its_argument() -> bool:
    import torch_npu

    return bool(torch_npu.npu.utils.get_soc_version() < _FIRST_WITH_OWN_RESULT)


@kernel("npu::npu_alloc_float_status")
def npu_alloc_float_status(input: Tensor) -> Tensor:
    return torch.zeros(_FLAGS, dtype=torch.float32)


@kernel("npu::npu_get_float_status")
def npu_get_float_status(input: Tensor, mode: int = 0) -> Tensor:
    _check_mode(mode)
    overflowed = saturates() and take_overflow_flag(device_of_call().index or 0, clear=False)
    status = input.zero_() if mode == 0 and _writes_its_argument() else torch.zeros(_FLAGS, dtype=torch.int32)
    status[0] = int(overflowed)
    return status


@kernel("npu::npu_clear_float_status")
def npu_clear_float_status(input: Tensor, mode: int = 0) -> Tensor:
    _check_mode(mode)
    if saturates():
        take_overflow_flag(device_of_call().index or 0, clear=True)
    return torch.zeros(_FLAGS, dtype=input.dtype)
