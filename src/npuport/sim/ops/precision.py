"""The precision in which references compute: float32 for the narrower dtypes, float64 for float64."""

from __future__ import annotations

import torch
from torch import Tensor


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32, or as it is when it is float64 (which the device refuses and gradient checks use)."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def for_product(tensor: Tensor) -> Tensor:
    """The tensor as products are computed: float16 in float32 (PyTorch's float16 products are far slower on most
    processors, and the device accumulates in float32), other dtypes as they are.
    """
    return tensor.float() if tensor.dtype == torch.float16 else tensor
