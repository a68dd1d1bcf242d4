"""Rotary position embedding (op-plugin docs: npu_rotary_mul, npu_apply_rotary_pos_emb, npu_interleave_rope)."""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.precision.references.formulas import formula, gradients, refuse


def _turned(x: Tensor, mode: str) -> Tensor:
    """half: (a, b) becomes (-b, a) for the halves of the last dimension; interleave: for each pair of neighbours."""
    refuse("rotary_mode", mode, "half", "interleave")
    if mode == "half":
        half = x.size(-1) // 2
        return torch.cat((-x[..., half:], x[..., :half]), -1)
    return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).reshape(x.shape)


def _embedded(x: Tensor, cos: Tensor, sin: Tensor, mode: str) -> Tensor:
    return x * cos + _turned(x, mode) * sin


@formula("npu.npu_rotary_mul")
def rotary_mul(
    input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half", rotate: Tensor | None = None
) -> Tensor:
    if rotate is not None:
        return input * r1 + (input @ rotate) * r2
    return _embedded(input, r1, r2, rotary_mode)


@formula("npu.npu_rotary_mul_backward")
def rotary_mul_backward(
    grad: Tensor, input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half"
) -> tuple[Tensor, ...]:
    return tuple(gradients(lambda x, cos, sin: _embedded(x, cos, sin, rotary_mode), [input, r1, r2], grad))


@formula("npu.npu_apply_rotary_pos_emb")
def apply_rotary_pos_emb(
    query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, layout: str = "BSND", rotary_mode: str = "half"
) -> tuple[Tensor, Tensor]:
    return _embedded(query, cos, sin, rotary_mode), _embedded(key, cos, sin, rotary_mode)


@formula("npu.npu_interleave_rope")
def interleave_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The even values of the last dimension are laid before the odd ones first, and stay so."""
    return _embedded(torch.cat((x[..., 0::2], x[..., 1::2]), -1), cos, sin, "half")
