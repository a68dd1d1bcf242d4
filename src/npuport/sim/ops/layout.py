"""Casts, copies and shapes (memory formats are npuport.sim.formats).

Pages: Ascend/op-plugin docs/zh/custom_APIs/torch_npu; code: op_plugin/ops/aclops (CastKernelNpu.cpp,
ConfusionTransposeKernelNpu.cpp, …).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel

# c10::ScalarType by number, which is what npu_dtype_cast and the quantizing operators take.
_SCALAR_TYPES = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
    torch.bool,
    torch.qint8,
    torch.quint8,
    torch.qint32,
    torch.bfloat16,
    torch.quint4x2,
)


def scalar_type(number: int | torch.dtype) -> torch.dtype:
    """The dtype behind one of torch_npu's dtype arguments; RuntimeError for formats that PyTorch has not."""
    if isinstance(number, torch.dtype):
        return number
    if not 0 <= number < len(_SCALAR_TYPES):
        raise RuntimeError(f"dtype number {number} is not a plain PyTorch dtype")
    return _SCALAR_TYPES[number]


@kernel("npu::npu_dtype_cast")
def npu_dtype_cast(input: Tensor, dtype: int, input_dtype: int | None = None) -> Tensor:
    """A copy in another dtype."""
    return input.to(scalar_type(dtype), copy=True)


@kernel("npu::_npu_dtype_cast")
def npu_dtype_cast_scalar_type(input: Tensor, dtype: torch.dtype) -> Tensor:
    return input.to(scalar_type(dtype), copy=True)


@kernel("npu::npu_dtype_cast_backward", lend=False)
def npu_dtype_cast_backward(
    grad: Tensor, dtype: torch.dtype, grad_dtype: int | None = None, input_dtype: int | None = None
) -> Tensor:
    """The other cast, with a gradient of its own, which is asked for even if ``grad`` had none
    (op_plugin's ops/opapi/CastKernelNpuOpApi.cpp).
    """
    to = _SCALAR_TYPES.index(scalar_type(dtype)) if input_dtype is None else input_dtype
    cast: Tensor = torch.ops.npu.npu_dtype_cast.default(grad.requires_grad_(), to, grad_dtype)
    return cast


@kernel("npu::_npu_dtype_cast_backward", lend=False)
def npu_dtype_cast_scalar_type_backward(grad: Tensor, dtype: torch.dtype) -> Tensor:
    cast: Tensor = torch.ops.npu._npu_dtype_cast.default(grad.requires_grad_(), scalar_type(dtype))
    return cast


@kernel("npu::npu_dtype_cast_")
def npu_dtype_cast_(input: Tensor, src: Tensor) -> Tensor:
    """Nothing for equal dtypes (as in CastKernelNpu.cpp), else input = src cast."""
    return input if input.dtype == src.dtype else input.copy_(src)


@kernel("npu::copy_memory_")
def copy_memory_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """input.copy_(src) (torch_npu-copy_memory_.md)."""
    return input.copy_(src)


@kernel("npu::npu_view_copy")
def npu_view_copy(input: Tensor, other: Tensor, non_blocking: bool) -> Tensor:
    """input.copy_(other) where either may be a strided view."""
    return input.copy_(other)


@kernel("npu::one_")
def one_(input: Tensor) -> Tensor:
    return input.fill_(1)


@kernel("npu::npu_transpose")
def npu_transpose(input: Tensor, perm: Sequence[int], require_contiguous: bool = True) -> Tensor:
    """permute, contiguous (torch_npu-npu_transpose.md)."""
    return input.permute(list(perm)).clone(memory_format=torch.contiguous_format)


@kernel("npu::npu_transpose.out")
def npu_transpose_out(input: Tensor, perm: Sequence[int], require_contiguous: bool = True, *, out: Tensor) -> Tensor:
    return out.copy_(input.permute(list(perm)))


@kernel("npu::npu_broadcast")
def npu_broadcast(input: Tensor, size: Sequence[int]) -> Tensor:
    return input.expand(list(size)).clone(memory_format=torch.contiguous_format)


@kernel("npu::npu_broadcast.out")
def npu_broadcast_out(input: Tensor, size: Sequence[int], *, out: Tensor) -> Tensor:
    return out.copy_(input.expand(list(size)))


@kernel("npu::npu_reshape")
def npu_reshape(input: Tensor, shape: Sequence[int], can_refresh: bool = False) -> Tensor:
    return input.reshape(list(shape)).clone(memory_format=torch.contiguous_format)


@kernel("npu::npu_reshape.out")
def npu_reshape_out(input: Tensor, shape: Sequence[int], can_refresh: bool = False, *, out: Tensor) -> Tensor:
    return out.copy_(input.reshape(list(shape)))


@kernel("npu::npu_slice")
def npu_slice(input: Tensor, offsets: Sequence[int], size: Sequence[int]) -> Tensor:
    """The block of `size` that starts at `offsets` (torch_npu-npu_slice.md)."""
    return input[tuple(slice(o, o + n) for o, n in zip(offsets, size, strict=True))].clone()


@kernel("npu::npu_stride_copy")
def npu_stride_copy(input: Tensor, shape: Sequence[int], stride: Sequence[int], storage_offset: int) -> Tensor:
    return input.as_strided(list(shape), list(stride), int(storage_offset)).clone(memory_format=torch.contiguous_format)


@kernel("npu::npu_confusion_transpose")
def npu_confusion_transpose(input: Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool) -> Tensor:
    """permute then reshape, or reshape then permute (torch_npu-npu_confusion_transpose.md)."""
    if transpose_first:
        moved = input.permute(list(perm)).reshape(list(shape))
    else:
        moved = input.reshape(list(shape)).permute(list(perm))
    return moved.clone(memory_format=torch.contiguous_format)


@kernel("npu::npu_confusion_transpose_backward")
def npu_confusion_transpose_backward(
    grad: Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> Tensor:
    """Undo: `shape` is the forward input's and `transpose_first` the opposite of the forward's (derivatives.yaml)."""
    inverse = [list(perm).index(d) for d in range(len(perm))]
    if transpose_first:
        moved = grad.permute(inverse).reshape(list(shape))
    else:
        moved = grad.reshape([shape[d] for d in perm]).permute(inverse)
    return moved.clone(memory_format=torch.contiguous_format)


@kernel("npu::npu_slice.out")
def npu_slice_out(input: Tensor, offsets: Sequence[int], size: Sequence[int], *, out: Tensor) -> Tensor:
    return out.resize_(list(size)).copy_(npu_slice(input, offsets, size))


@kernel("npu::npu_stride_copy.out")
def npu_stride_copy_out(
    input: Tensor, shape: Sequence[int], stride: Sequence[int], storage_offset: int, *, out: Tensor
) -> Tensor:
    return out.resize_(list(shape)).copy_(npu_stride_copy(input, shape, stride, storage_offset))


@kernel("npu::npu_pad")
def npu_pad(input: Tensor, paddings: Sequence[int]) -> Tensor:
    """Zeros around: (before, after) of the first dimension first; missing ones are 0 (PadKernelNpu.cpp)."""
    pairs = [*paddings, *[0] * (2 * input.dim() - len(paddings))]
    last_first = [size for d in reversed(range(input.dim())) for size in pairs[2 * d : 2 * d + 2]]
    return torch.nn.functional.pad(input, last_first)


@kernel("npu::npu_stride_add")
def npu_stride_add(self: Tensor, other: Tensor, offset1: float, offset2: float, c1_len: float) -> Tensor:
    """The sum of two blocks of c1_len·16 channels (dimension 1), which start at channels offset1·16 and offset2·16; a
    channel that is missing counts as 0 (StrideAddKernelNpu.cpp; op-plugin's test_strideadd.py).
    """
    channels = int(c1_len) * 16

    def block(tensor: Tensor, offset: float) -> Tensor:
        part = tensor[:, int(offset) * 16 : int(offset) * 16 + channels]
        missing = channels - part.size(1)
        return torch.nn.functional.pad(part, [*[0, 0] * (tensor.dim() - 2), 0, missing])

    return block(self, offset1) + block(other, offset2)


@kernel("npu::npu_sign_bits_pack")
def npu_sign_bits_pack(self: Tensor, size: int) -> Tensor:
    """uint8 [size, ⌈n / 8⌉ / size]: bit i of byte j is whether element 8·j + i is not negative; what is missing counts
    as negative (torch_npu-npu_sign_bits_pack.md).
    """
    if self.dim() != 1:
        raise RuntimeError("input must be one-dimensional")
    if self.dtype not in (torch.float16, torch.float32):
        raise RuntimeError("all only supports torch.float16 and torch.float32 dtypes")
    bits = torch.nn.functional.pad((self >= 0).to(torch.uint8), (0, -self.numel() % 8)).view(-1, 8)
    if size == 0 or bits.size(0) % size:
        raise RuntimeError("all must be divisible by size")
    return (bits << torch.arange(8, dtype=torch.uint8)).sum(dim=1, dtype=torch.uint8).view(size, -1)


@kernel("npu::npu_sign_bits_unpack")
def npu_sign_bits_unpack(input: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """[size, 8·n / size]: 1 for a set bit and -1 for an empty one, lowest bit first
    (torch_npu-npu_sign_bits_unpack.md).
    """
    if input.dim() != 1:
        raise RuntimeError("input value should be a 1-dimensional tensor")
    if input.dtype != torch.uint8:
        raise RuntimeError("sign_bits_unpack input only supports torch.uint8 ")
    if size <= 0:
        raise RuntimeError("The argument 'size' is not valid because it is less than or equal to zero")
    if input.numel() * 8 % size:
        raise RuntimeError("input value length*8 must be multiple of size")
    if dtype not in (torch.float16, torch.float32):
        raise RuntimeError("The argument 'dtype'  must be torch.float32 or torch.float16")
    bits = (input[:, None] >> torch.arange(8, dtype=torch.uint8)) & 1
    return (bits.to(dtype) * 2 - 1).view(size, -1)
