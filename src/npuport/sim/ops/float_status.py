"""Overflow flags: eight zeros, because results are computed by IEEE arithmetic that leaves inf and nan in the tensors
instead of raising a flag.

That is the INF_NAN mode, the only one from Ascend 910B on; dtypes as documented for those chips
(FloatStatusKernelNpu.cpp, torch_npu-npu_{alloc,get,clear}_float_status.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel

_FLAGS = 8


def _check_mode(mode: int) -> None:
    if mode not in (0, 1):
        raise RuntimeError(f"mode only supported for ORIGINAL_MODE(0) DEBUG_MODE(1), but got mode:{mode}")


@kernel("npu::npu_alloc_float_status")
def npu_alloc_float_status(input: Tensor) -> Tensor:
    return torch.zeros(_FLAGS, dtype=torch.float32)


@kernel("npu::npu_get_float_status")
def npu_get_float_status(input: Tensor, mode: int = 0) -> Tensor:
    _check_mode(mode)
    return torch.zeros(_FLAGS, dtype=torch.int32)


@kernel("npu::npu_clear_float_status")
def npu_clear_float_status(input: Tensor, mode: int = 0) -> Tensor:
    _check_mode(mode)
    return torch.zeros(_FLAGS, dtype=input.dtype)
