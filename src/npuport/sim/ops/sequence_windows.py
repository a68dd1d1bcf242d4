"""Weighted sums over windows of a sequence: masked causal convolution and the compression of native sparse attention.

Pages: torch_npu-npu_masked_causal_conv1d.md of Ascend/op-plugin; golden functions of its test_npu_nsa_compress.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel


def _causal(input: Tensor, weight: Tensor, mask: Tensor | None) -> Tensor:
    width = weight.size(0)
    padded = torch.nn.functional.pad(input, (0, 0, 0, 0, width - 1, 0))
    found = torch.stack([padded[k : k + input.size(0)] * weight[k] for k in range(width)]).sum(dim=0)
    return found if mask is None else found * mask.t().unsqueeze(-1)


@kernel("npu::npu_masked_causal_conv1d")
def npu_masked_causal_conv1d(input: Tensor, weight: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Each channel of input [S, B, H] convolved with weight [W, H] over this and the W - 1 steps before; 0 where mask
    [B, S] is false.
    """
    return _causal(wide(input), wide(weight), mask).to(input.dtype)


@kernel("npu::npu_masked_causal_conv1d_backward")
def npu_masked_causal_conv1d_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, *, mask: Tensor | None = None
) -> tuple[Tensor, ...]:
    """(dinput, dweight)."""
    leaves = input, weight
    found = vector_jacobian(lambda x, w: _causal(x, w, mask), [wide(t) for t in leaves], (wide(grad_output),))
    return tuple(f.to(t.dtype) for f, t in zip(found, leaves, strict=True) if f is not None)


def _compressed(input: Tensor, weight: Tensor, block: int, stride: int, ends: Sequence[int] | None) -> Tensor:
    starts = [0, *(ends or [])][: len(ends or [0])]
    windows = [
        input[start + offset : start + offset + block]
        for start, end in zip(starts, ends or [input.size(0)], strict=True)
        for offset in range(0, end - start - block + 1, stride)
    ]
    if not windows:
        return input.new_zeros(0, *input.shape[1:])
    return (torch.stack(windows) * weight.unsqueeze(-1)).sum(dim=1)


@kernel("npu::npu_nsa_compress")
def npu_nsa_compress(
    input: Tensor,
    weight: Tensor,
    compress_block_size: int,
    compress_stride: int,
    *,
    actual_seq_len: Sequence[int] | None = None,
) -> Tensor:
    """[blocks, N, D]: sums of compress_block_size tokens of input [T, N, D], weighted by weight [block, N], every
    compress_stride tokens of each sequence; `actual_seq_len` holds where the sequences end.
    """
    found = _compressed(wide(input), wide(weight), compress_block_size, compress_stride, actual_seq_len)
    return found.to(input.dtype)


@kernel("npu::npu_nsa_compress_grad")
def npu_nsa_compress_grad(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    compress_block_size: int,
    compress_stride: int,
    *,
    actual_seq_len: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """(dinput, dweight)."""

    def compress(x: Tensor, w: Tensor) -> Tensor:
        return _compressed(x, w, compress_block_size, compress_stride, actual_seq_len)

    leaves = input, weight
    found = vector_jacobian(compress, [wide(t) for t in leaves], (wide(grad),))
    return tuple(f.to(t.dtype) for f, t in zip(found, leaves, strict=True) if f is not None)
