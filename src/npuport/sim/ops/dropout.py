"""Dropout.

The real device draws from its own Philox counter, so masks there never equal a GPU's or a CPU's. Here every mask is
drawn as the CPU run draws it (`torch.dropout`: bernoulli_ on a tensor like the input, from the default CPU generator),
so that losses can be compared digit by digit. Masks of `npu::_npu_dropout` are bytes with one bit per element, padded
to 128 elements (op_plugin/ops/opapi/NativeDropoutKernelNpuOpApi.cpp), lowest bit first (bitorder="little" in
op-plugin's test_npu_flash_attention_v2.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.randomness import bernoulli
from npuport.sim.ops.registration import kernel

_MASK_ALIGNMENT = 128


def keep_mask(like: Tensor, p: float) -> Tensor:
    """1 where an element survives dropout with probability `p`, 0 elsewhere, in the dtype of `like`; the draw that
    `torch.dropout` makes on the CPU.
    """
    return bernoulli(like, 1 - p)


def pack_bits(mask: Tensor) -> Tensor:
    """uint8 [ceil(n / 128) * 16]: bit i of byte j is element 8·j + i of the flattened mask."""
    bits = mask.flatten().to(torch.uint8)
    padding = -bits.numel() % _MASK_ALIGNMENT
    bits = torch.nn.functional.pad(bits, (0, padding)).view(-1, 8)
    return (bits << torch.arange(8, dtype=torch.uint8)).sum(dim=1, dtype=torch.uint8)


def unpack_bits(packed: Tensor, like: Tensor) -> Tensor:
    """The mask with the shape and dtype of `like`; undoes `pack_bits`."""
    bits = (packed.flatten()[:, None] >> torch.arange(8, dtype=torch.uint8)) & 1
    return bits.flatten()[: like.numel()].view(like.shape).to(like.dtype)


@kernel("aten::native_dropout")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """(output, bool mask). Scales by mask / (1 - p) in one product, as `torch.dropout` does, where
    `torch.native_dropout` multiplies twice.
    """
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    mask = keep_mask(input, p)
    return input * _scaled(mask, p), mask.to(torch.bool)


@kernel("aten::native_dropout_backward")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    if scale in (0.0, 1.0):
        return grad_output * (mask.to(grad_output.dtype) * scale)
    return grad_output * mask.to(grad_output.dtype).div(1 / scale)


def _scaled(mask: Tensor, p: float) -> Tensor:
    return mask if p == 1 else mask.clone().div_(1 - p)


@kernel("npu::_npu_dropout")
def npu_dropout(input: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """(output, packed mask) of torch_npu-_npu_dropout.md; p is the probability of dropping."""
    mask = keep_mask(input, p)
    return input * _scaled(mask, p), pack_bits(mask)


@kernel("npu::npu_dropout_backward")
def npu_dropout_backward(grad_output: Tensor, mask: Tensor, p: float) -> Tensor:
    return grad_output * _scaled(unpack_bits(mask, grad_output), p)


@kernel("npu::npu_dropout_do_mask")
def npu_dropout_do_mask(input: Tensor, mask: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Apply a packed mask; returns (output, mask)."""
    return input * _scaled(unpack_bits(mask, input), p), mask.clone()


@kernel("npu::_npu_dropout_gen_mask.Tensor")
def npu_dropout_gen_mask(
    input: Tensor,
    size: Sequence[int],
    p: float,
    seed: int,
    offset: int,
    *,
    parallel: bool | None = True,
    sync: bool | None = None,
) -> Tensor:
    """A packed mask for `size` elements that depends on (seed, offset) alone, as on the device, though not the same
    bits.
    """
    generator = torch.Generator().manual_seed((seed * 1_000_003 + offset) % 2**63)
    return pack_bits(torch.empty(list(size)).bernoulli_(1 - p, generator=generator))


@kernel("npu::npu_dropout_gen_mask", keys=("CompositeImplicitAutograd",), lend=False)
def npu_dropout_gen_mask_from_generator(
    size: Sequence[int],
    p: float,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """A packed mask for `size` elements from the default CPU generator (DropoutGenMaskKernelNpuOpApi.cpp)."""
    target = device or torch.device("npu")
    return pack_bits(torch.empty(list(size), device=target).bernoulli_(1 - p).cpu()).to(target)


@kernel("npu::_dropout_with_byte_mask")
def dropout_with_byte_mask_pair(input: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """(output, uint8 mask with one byte per element) (op_plugin/ops/aclops/DropoutWithByteMaskKernelNpu.cpp)."""
    mask = keep_mask(input, p)
    return input * _scaled(mask, p), mask.to(torch.uint8)


@kernel("npu::_dropout_with_byte_mask_backward")
def dropout_with_byte_mask_backward(grad_output: Tensor, mask: Tensor, p: float) -> Tensor:
    return grad_output * _scaled(mask.to(grad_output.dtype), p)


@kernel("aten::_masked_scale")
def masked_scale(self: Tensor, mask: Tensor, scale: float) -> Tensor:
    return self * mask.to(self.dtype) * scale
