"""Rotary position embedding: x·cos + rotate(x)·sin (Ascend/op-plugin
docs/zh/custom_APIs/torch_npu/torch_npu-npu_rotary_mul.md).
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


def rotate(x: Tensor, mode: str) -> Tensor:
    """half: (x₁, x₂) -> (-x₂, x₁) for the two halves of the last dimension; interleave: the same for its even and odd
    elements.

    Raises RuntimeError for another mode.
    """
    if mode == "half":
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)
    if mode == "interleave":
        return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    raise RuntimeError(f"The rotary_mode of npu_rotary_mul should be half or interleave, but got {mode}")


def rotate_back(x: Tensor, mode: str) -> Tensor:
    """The transpose of `rotate`, which for a rotation by a quarter turn is its negative."""
    return -rotate(x, mode)


def _embed(x: Tensor, cos: Tensor, sin: Tensor, mode: str) -> Tensor:
    wide = x.float()
    return (wide * cos.float() + rotate(wide, mode) * sin.float()).to(x.dtype)


@kernel("npu::npu_rotary_mul")
def npu_rotary_mul(
    input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half", rotate: Tensor | None = None
) -> Tensor:
    """x·r1 + rotate(x)·r2, or with x @ `rotate` in the place of rotate(x) when that matrix is given (forward only)."""
    if rotate is not None:
        wide = input.float()
        return (wide * r1.float() + (wide @ rotate.float()) * r2.float()).to(input.dtype)
    return _embed(input, r1, r2, rotary_mode)


@kernel("npu::npu_rotary_mul_backward")
def npu_rotary_mul_backward(
    grad: Tensor, input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half"
) -> tuple[Tensor, Tensor, Tensor]:
    """(dx, dr1, dr2), each in the shape of its tensor."""
    wide, x = grad.float(), input.float()
    dx = wide * r1.float() + rotate_back(wide * r2.float(), rotary_mode)
    dr1 = (wide * x).sum_to_size(r1.shape)
    dr2 = (wide * rotate(x, rotary_mode)).sum_to_size(r2.shape)
    return dx.to(input.dtype), dr1.to(r1.dtype), dr2.to(r2.dtype)


@kernel("npu::npu_apply_rotary_pos_emb")
def npu_apply_rotary_pos_emb(
    query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, layout: str = "BSND", rotary_mode: str = "half"
) -> tuple[Tensor, Tensor]:
    """Rotates query and key in place and returns them (torch_npu-apply_rotary_pos_emb.md,
    ApplyRotaryPosEmbNpuOpApi.cpp).
    """
    if rotary_mode == "quarter":
        raise NoReferenceError("npu::npu_apply_rotary_pos_emb", "rotary_mode 'quarter'")
    return query.copy_(_embed(query, cos, sin, rotary_mode)), key.copy_(_embed(key, cos, sin, rotary_mode))
