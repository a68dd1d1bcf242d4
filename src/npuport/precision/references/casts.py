"""Operators that move, cast or choose values (op-plugin docs: npu_dtype_cast, npu_transpose, npu_confusion_transpose,
npu_slice, npu_pad, npu_one_hot, npu_max, npu_min, copy_memory_), and those that drop values by a mask that
they are given (npu_dropout_backward)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from npuport.precision.references.formulas import formula, refuse

# c10::ScalarType by number (c10/core/ScalarType.h): those in which float64 does not hold the values as they are.
_WHOLE = {0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 11: torch.bool}
_FLOATING = (5, 6, 7, 15)


def _cast(input: Tensor, dtype: Any) -> Tensor:
    """Between floating dtypes the values stay; what they are rounded by is the dtype's rounding."""
    if isinstance(dtype, torch.dtype):
        return input.to(dtype)
    refuse("dtype", dtype, *_WHOLE, *_FLOATING)
    if dtype in _WHOLE:
        return input.to(_WHOLE[dtype])
    return input if input.is_floating_point() else input.double()


@formula("npu.npu_dtype_cast", "npu._npu_dtype_cast")
def dtype_cast(input: Tensor, dtype: Any, input_dtype: int | None = None) -> Tensor:
    return _cast(input, dtype)


@formula("npu.npu_dtype_cast_backward", "npu._npu_dtype_cast_backward")
def dtype_cast_backward(
    grad: Tensor, dtype: Any, grad_dtype: int | None = None, input_dtype: int | None = None
) -> Tensor:
    return _cast(grad, dtype)


@formula("npu.copy_memory_")
def copy_memory_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return src.expand(input.shape).to(input.dtype)


@formula("npu.npu_view_copy")
def view_copy(input: Tensor, other: Tensor, non_blocking: bool) -> Tensor:
    return other.expand(input.shape).to(input.dtype)


@formula("npu.one_")
def one_(input: Tensor) -> Tensor:
    return torch.ones_like(input)


@formula("npu.npu_transpose")
def transpose(input: Tensor, perm: Sequence[int], require_contiguous: bool = True) -> Tensor:
    return input.permute(tuple(perm))


@formula("npu.npu_reshape")
def reshape(input: Tensor, shape: Sequence[int], can_refresh: bool = False) -> Tensor:
    return input.reshape(tuple(shape))


@formula("npu.npu_broadcast")
def broadcast(input: Tensor, size: Sequence[int]) -> Tensor:
    return input.expand(tuple(size))


@formula("npu.npu_confusion_transpose")
def confusion_transpose(input: Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool) -> Tensor:
    if transpose_first:
        return input.permute(tuple(perm)).reshape(tuple(shape))
    return input.reshape(tuple(shape)).permute(tuple(perm))


@formula("npu.npu_confusion_transpose_backward")
def confusion_transpose_backward(
    grad: Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> Tensor:
    """``shape`` is that of the forward input; ``transpose_first`` the opposite of the forward call's."""
    back = [list(perm).index(d) for d in range(len(perm))]
    if transpose_first:
        return grad.permute(back).reshape(tuple(shape))
    return grad.reshape([shape[d] for d in perm]).permute(back)


@formula("npu.npu_slice")
def slice_(input: Tensor, offsets: Sequence[int], size: Sequence[int]) -> Tensor:
    for dim, (start, length) in enumerate(zip(offsets, size, strict=True)):
        input = input.narrow(dim, start, length)
    return input


@formula("npu.npu_pad")
def pad(input: Tensor, paddings: Sequence[int]) -> Tensor:
    """Zeros before and after, of the first dimension first."""
    given = list(paddings) + [0] * (2 * input.dim() - len(paddings))
    sizes = [input.size(d) + given[2 * d] + given[2 * d + 1] for d in range(input.dim())]
    made = input.new_zeros(sizes)
    made[tuple(slice(given[2 * d], given[2 * d] + input.size(d)) for d in range(input.dim()))] = input
    return made


@formula("npu.npu_one_hot")
def one_hot(input: Tensor, num_classes: int = -1, depth: int = 1, on_value: float = 1, off_value: float = 0) -> Tensor:
    classes = torch.arange(depth)
    return torch.where(input[..., None] == classes, float(on_value), float(off_value))


@formula("npu.npu_max.dim")
def largest(input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, indices = torch.max(input, dim, keepdim)
    return values, indices


@formula("npu.npu_min.dim")
def smallest(input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, indices = torch.min(input, dim, keepdim)
    return values, indices


@formula("npu.npu_max_backward", "npu.npu_min_backward")
def choice_backward(grad: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool) -> Tensor:
    """The gradient goes to the value that was chosen."""
    if not keepdim and len(sizes):
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(tuple(sizes)).scatter(dim, indices.long(), grad)


@formula("npu.npu_gather_backward")
def gather_backward(grad: Tensor, self_size: Sequence[int], dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    refuse("sparse_grad", sparse_grad, False)
    return grad.new_zeros(tuple(self_size)).scatter_add(dim, index, grad)


@formula("npu.npu_gather_sparse_index")
def gather_sparse_index(input: Tensor, index: Tensor) -> Tensor:
    return input[index]


@formula("npu.npu_gather_sparse_index_backward")
def gather_sparse_index_backward(grad: Tensor, self_sizes: Sequence[int], index: Tensor) -> Tensor:
    zeros = grad.new_zeros(tuple(self_sizes))
    return zeros.index_put((index,), grad, accumulate=True)


@formula("npu.repeat_interleave_backward_int", "npu.repeat_interleave_backward_tensor")
def repeat_interleave_backward(grad: Tensor, input: Tensor, repeats: int | Tensor, dim: int | None = None) -> Tensor:
    """Each value gets the gradients of its copies."""
    flat, at = (input.flatten(), 0) if dim is None else (input, dim)
    sources = torch.arange(flat.size(at)).repeat_interleave(
        repeats if isinstance(repeats, int) or repeats.dim() == 0 else repeats.to(torch.int64)
    )
    return flat.new_zeros(flat.shape).index_add(at, sources, grad).reshape(input.shape)


def _kept(mask: Tensor, like: Tensor) -> Tensor:
    """One bit for each value, the lowest first (npu_dropout_gen_mask)."""
    bits = (mask.flatten()[:, None].to(torch.int64) >> torch.arange(8)) & 1
    return bits.flatten()[: like.numel()].reshape(like.shape).to(like.dtype)


@formula("npu.npu_dropout_backward")
def dropout_backward(grad_output: Tensor, mask: Tensor, p: float) -> Tensor:
    return grad_output * _kept(mask, grad_output) / (1 - p if p < 1 else math.inf)


@formula("npu.npu_dropout_do_mask")
def dropout_do_mask(input: Tensor, mask: Tensor, p: float) -> tuple[Tensor, Tensor]:
    return dropout_backward(input, mask, p), mask


@formula("npu._dropout_with_byte_mask_backward")
def dropout_with_byte_mask_backward(grad_output: Tensor, mask: Tensor, p: float) -> Tensor:
    return grad_output * mask.to(grad_output.dtype) / (1 - p if p < 1 else math.inf)


@formula("aten._masked_scale")
def masked_scale(self: Tensor, mask: Tensor, scale: float) -> Tensor:
    return self * mask.to(self.dtype) * scale
