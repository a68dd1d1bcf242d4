"""The precision in which references compute: float32 for the narrower dtypes, float64 for float64."""

from __future__ import annotations

import torch
from torch import Tensor


def wide(tensor: Tensor) -> Tensor:
    """The tensor in float32, or as it is when it is float64 (which the device refuses and gradient checks use)."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
