"""Rotary position embedding: x·cos + rotate(x)·sin.

Sources: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_rotary_mul.md, …-apply_rotary_pos_emb.md,
…-npu_mrope.md, …-npu_interleave_rope.md; CANN's rotary_position_embedding (hicann/ops-transformer posembedding/) for
the quarter mode; op_plugin/ops/opapi/RotaryMul*.cpp, which cast cos and sin to the dtype of x first, and
RopeWithSinCosCacheKernelNpuOpApi.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


def rotate(x: Tensor, mode: str) -> Tensor:
    """half: (x₁, x₂) -> (-x₂, x₁) for the two halves of the last dimension; quarter: the same for each half;
    interleave: the same for its even and odd elements.

    Raises RuntimeError for another mode.
    """
    if mode == "half":
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)
    if mode == "quarter":
        return torch.cat([rotate(part, "half") for part in x.chunk(2, dim=-1)], dim=-1)
    if mode == "interleave":
        return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    raise RuntimeError(f"The rotary_mode of npu_rotary_mul should be half or interleave, but got {mode}")


def rotate_back(x: Tensor, mode: str) -> Tensor:
    """The transpose of `rotate`, which for a rotation by a quarter turn is its negative."""
    return -rotate(x, mode)


def embed(x: Tensor, cos: Tensor, sin: Tensor, mode: str) -> Tensor:
    """x·cos + rotate(x)·sin, in the dtype of x."""
    cos, sin = wide(cos.to(x.dtype)), wide(sin.to(x.dtype))
    return (wide(x) * cos + rotate(wide(x), mode) * sin).to(x.dtype)


def _check_mode(rotary_mode: str) -> None:
    if rotary_mode not in ("half", "interleave"):
        raise RuntimeError(f"The rotary_mode of npu_rotary_mul should be half or interleave, but got {rotary_mode}")


@kernel("npu::npu_rotary_mul")
def npu_rotary_mul(
    input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half", rotate: Tensor | None = None
) -> Tensor:
    """x·r1 + rotate(x)·r2, or with x @ `rotate` in the place of rotate(x) when that matrix is given (forward only)."""
    _check_mode(rotary_mode)
    if rotate is not None:
        cos, sin = wide(r1.to(input.dtype)), wide(r2.to(input.dtype))
        return (wide(input) * cos + (wide(input) @ wide(rotate)) * sin).to(input.dtype)
    return embed(input, r1, r2, rotary_mode)


@kernel("npu::npu_rotary_mul_backward")
def npu_rotary_mul_backward(
    grad: Tensor, input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half"
) -> tuple[Tensor, Tensor, Tensor]:
    """(dx, dr1, dr2), each in the shape of its tensor."""
    _check_mode(rotary_mode)
    upper, x = wide(grad.to(input.dtype)), wide(input)
    cos, sin = wide(r1.to(input.dtype)), wide(r2.to(input.dtype))
    dx = upper * cos + rotate_back(upper * sin, rotary_mode)
    dr1 = (upper * x).sum_to_size(r1.shape)
    dr2 = (upper * rotate(x, rotary_mode)).sum_to_size(r2.shape)
    return dx.to(input.dtype), dr1.to(r1.dtype), dr2.to(r2.dtype)


@kernel("npu::npu_apply_rotary_pos_emb")
def npu_apply_rotary_pos_emb(
    query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, layout: str = "BSND", rotary_mode: str = "half"
) -> tuple[Tensor, Tensor]:
    """Rotates query and key in place and returns them (ApplyRotaryPosEmbNpuOpApi.cpp)."""
    return query.copy_(embed(query, cos, sin, rotary_mode)), key.copy_(embed(key, cos, sin, rotary_mode))


def deinterleave(x: Tensor) -> Tensor:
    """The even elements of the last dimension, then the odd ones."""
    return torch.cat((x[..., ::2], x[..., 1::2]), dim=-1)


@kernel("npu::npu_interleave_rope")
def npu_interleave_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The half mode on x [B, N, S, D] with its even elements laid before its odd ones; the result stays in that
    order.
    """
    return embed(deinterleave(x), cos, sin, "half")


@kernel("npu::npu_mrope")
def npu_mrope(
    positions: Tensor,
    query: Tensor,
    key: Tensor,
    cos_sin_cache: Tensor,
    head_size: int,
    *,
    mrope_section: Sequence[int] | None = None,
    rotary_mode: str | None = "half",
    cache_mode: str | None = "default",
) -> tuple[Tensor, Tensor]:
    """Query [T, N·D] and key, rotated by the angles that a cache [positions, cos | sin] has for the positions of the
    tokens: [T], or several positions a token [m, T] of which each rules its section of the angles.
    """
    if rotary_mode not in (None, "half", "interleave"):  # the page says interleaved, which op-plugin does not accept
        raise RuntimeError(f"rotary_mode only support half or interleave, but got {rotary_mode}")
    if cache_mode not in (None, "default", "interleave"):
        raise RuntimeError(f"cache_mode only support default or interleave, but got {cache_mode}")
    cos, sin = wide(cos_sin_cache[positions.long()]).chunk(2, dim=-1)
    if positions.dim() == 2:
        sections = list(mrope_section or ())
        if len(sections) != positions.size(0):
            raise RuntimeError(f"npu_mrope: {positions.size(0)} positions a token for the sections {sections}")
        cos, sin = (_of_sections(angles, sections, cache_mode or "default") for angles in (cos, sin))
    turned = [_rotate_heads(x, cos, sin, head_size, rotary_mode or "half") for x in (query, key)]
    return turned[0], turned[1]


def _of_sections(angles: Tensor, sections: list[int], cache_mode: str) -> Tensor:
    """One angle for each pair of elements from m angles [m, T, pairs]."""
    if cache_mode == "default":
        parts = angles.split(sections, dim=-1)
        return torch.cat([part[i] for i, part in enumerate(parts)], dim=-1)
    if len(sections) != 3:
        raise NoReferenceError("npu::npu_mrope", f"cache_mode {cache_mode} for {len(sections)} sections")
    merged = angles[0].clone()
    for i in (1, 2):
        merged[..., i : sections[1] * 3 : 3] = angles[i, ..., i : sections[1] * 3 : 3]
    return merged


def _rotate_heads(x: Tensor, cos: Tensor, sin: Tensor, head_size: int, mode: str) -> Tensor:
    """The first 2·pairs elements of each head, turned; the rest as it is."""
    heads = wide(x).view(x.size(0), -1, head_size)
    turning, still = heads.split([2 * cos.size(-1), head_size - 2 * cos.size(-1)], dim=-1)
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    first, second = turning.chunk(2, dim=-1) if mode == "half" else (turning[..., ::2], turning[..., 1::2])
    pairs = first * cos - second * sin, second * cos + first * sin
    turned = torch.cat(pairs, dim=-1) if mode == "half" else torch.stack(pairs, dim=-1).flatten(-2)
    return torch.cat((turned, still), dim=-1).view(x.shape).to(x.dtype)
