"""Quantization to int8 and int4, and back.

Pages: docs/zh/custom_APIs/torch_npu of Ascend/op-plugin; maths also in CANN's ops-nn quant/*/README.md. Eight int4
values share an int32, the first in the lowest bits. The 8- and 4-bit floating formats and the microscaling formats of
newer chips have no reference.
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.indexing import scatter_update_
from npuport.sim.ops.layout import scalar_type
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError

_INT4_PER_INT32 = 8
_RANGES = {torch.int8: (-128, 127), torch.uint8: (0, 255), torch.int32: (-(2**31), 2**31 - 1)}
_STORAGE = {torch.qint8: torch.int8, torch.quint8: torch.uint8, torch.qint32: torch.int32}
_INT4 = torch.quint4x2


def pack_int4(values: Tensor) -> Tensor:
    """int32 [..., n / 8] of integers from -8 to 7 [..., n]."""
    if values.size(-1) % _INT4_PER_INT32:
        raise RuntimeError("Input shape last dim must be divded by 8 when int4 quantization")
    nibbles = (values.to(torch.int64) & 0xF).view(*values.shape[:-1], -1, _INT4_PER_INT32)
    packed = (nibbles << torch.arange(0, 32, 4)).sum(dim=-1)
    return torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32)


def unpack_int4(packed: Tensor) -> Tensor:
    """int8 [..., 8·n] of int32 [..., n]."""
    nibbles = (packed.to(torch.int64).unsqueeze(-1) >> torch.arange(0, 32, 4)) & 0xF
    return torch.where(nibbles > 7, nibbles - 16, nibbles).to(torch.int8).flatten(-2)


def _stored(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Rounded to even and saturated."""
    if dtype == _INT4:
        return pack_int4(values.round().clamp(-8, 7))
    lowest, highest = _RANGES[dtype]
    return values.double().round().clamp(lowest, highest).to(dtype)


def _target(operator: str, dtype: int | torch.dtype | None, default: torch.dtype = torch.int8) -> torch.dtype:
    """The dtype in which a quantized result is stored (or quint4x2) for a dtype as torch_npu numbers it."""
    found = default if dtype is None else scalar_type(dtype)
    found = _STORAGE.get(found, found)
    if found not in (*_RANGES, _INT4):
        raise NoReferenceError(operator, f"quantization to {found}")
    return found


def _along(vector: Tensor, tensor: Tensor, axis: int) -> Tensor:
    """A vector of factors, or one of as many dimensions as the tensor, so that it broadcasts along `axis`."""
    if vector.dim() == tensor.dim() or vector.numel() == 1:
        return vector.float()
    shape = [1] * tensor.dim()
    shape[axis] = vector.numel()
    return vector.float().view(shape)


@kernel("npu::npu_quantize")
def npu_quantize(
    self: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    dtype: int | torch.dtype,
    axis: int = 1,
    div_mode: bool = True,
) -> Tensor:
    """round(self / scales + zero_points), or round(self · scales + zero_points) without `div_mode`, along `axis`, as
    int8, uint8, int32 or packed int4 (torch_npu-npu_quantize.md).

    Division rounds before the zero point is added, as torch.quantize_per_channel does. The axis of multiplication is
    the last one, or the one before if it is -2.
    """
    target = _target("npu::npu_quantize", dtype)
    along = axis if div_mode or axis < -1 else -1
    scale = _along(scales, self, along)
    scaled = self.float() / scale if div_mode else self.float() * scale
    if zero_points is not None:
        scaled = (scaled.round() if div_mode else scaled) + _along(zero_points, self, along)
    return _stored(scaled, target)


def _smoothed(input: Tensor, smooth_scales: Tensor | None, group_index: Tensor | None) -> Tensor:
    """Rows times their smoothing factors; with groups, group i has the rows up to group_index[i]."""
    wide = input.float()
    if smooth_scales is None:
        return wide
    if group_index is None:
        return wide * smooth_scales.float()
    rows = wide.reshape(-1, wide.size(-1)).clone()
    start = 0
    for end, factors in zip(group_index.tolist(), smooth_scales.float(), strict=True):
        rows[start:end] *= factors
        start = max(start, end)
    return rows.view(wide.shape)


def _dynamic(operator: str, dst_type: int | None, quant_mode: str, dst_type_max: float) -> tuple[torch.dtype, int]:
    """(target, largest value of it), after refusing what the pages do not describe."""
    if quant_mode != "pertoken" or dst_type_max:
        raise NoReferenceError(operator, f"quant_mode {quant_mode!r} with dst_type_max {dst_type_max}")
    target = _target(operator, dst_type)
    if target not in (torch.int8, _INT4):
        raise NoReferenceError(operator, f"quantization to {target}")
    return target, 7 if target == _INT4 else 127


@kernel("npu::npu_dynamic_quant")
def npu_dynamic_quant(
    input: Tensor,
    *,
    smooth_scales: Tensor | None = None,
    group_index: Tensor | None = None,
    dst_type: int | None = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """(int8 or packed int4, float32 scales without the last dimension): every row divided by its largest absolute value
    over that of the target (torch_npu-npu_dynamic_quant.md).
    """
    target, largest = _dynamic("npu::npu_dynamic_quant", dst_type, quant_mode, dst_type_max)
    rows = _smoothed(input, smooth_scales, group_index)
    scale = rows.abs().amax(dim=-1) / largest
    return _stored((rows / scale.unsqueeze(-1)).nan_to_num(), target), scale


@kernel("npu::npu_dynamic_quant_asymmetric")
def npu_dynamic_quant_asymmetric(
    input: Tensor,
    *,
    smooth_scales: Tensor | None = None,
    group_index: Tensor | None = None,
    dst_type: int | None = None,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """(int8 or packed int4, float32 scales, float32 offsets without the last dimension): every row stretched to the
    whole range of the target (torch_npu-npu_dynamic_quant_asymmetric.md).
    """
    target, largest = _dynamic("npu::npu_dynamic_quant_asymmetric", dst_type, quant_mode, dst_type_max)
    rows = _smoothed(input, smooth_scales, group_index)
    highest = rows.amax(dim=-1)
    scale = (highest - rows.amin(dim=-1)) / (2 * largest + 1)
    offset = largest - highest / scale
    return _stored((rows / scale.unsqueeze(-1) + offset.unsqueeze(-1)).nan_to_num(), target), scale, offset


@kernel("npu::npu_anti_quant")
def npu_anti_quant(
    x: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    dst_dtype: int | None = None,
    src_dtype: int | None = None,
) -> Tensor:
    """(x + offset) · scale along the last dimension, float16 unless `dst_dtype`; int32 holds int4
    (torch_npu-npu_anti_quant.md).
    """
    target = torch.float16 if dst_dtype is None else scalar_type(dst_dtype)
    if x.dtype not in (torch.int8, torch.int32):
        raise NoReferenceError("npu::npu_anti_quant", f"{x.dtype}")
    values = (unpack_int4(x) if x.dtype == torch.int32 else x).float()
    shifted = values if offset is None else values + offset.float()
    return (shifted * scale.float()).to(target)


@kernel("npu::npu_group_quant")
def npu_group_quant(
    x: Tensor,
    scale: Tensor,
    group_index: Tensor,
    *,
    offset: Tensor | None = None,
    dst_dtype: torch.dtype | None = None,
) -> Tensor:
    """round(x · scale[group] + offset) for rows [n, H], of which group i has those up to group_index[i]
    (torch_npu-npu_group_quant.md).
    """
    target = _target("npu::npu_group_quant", dst_dtype)
    scaled = _smoothed(x, scale, group_index)
    return _stored(scaled if offset is None else scaled + offset.float(), target)


@kernel("npu::npu_quant_scatter_")
def npu_quant_scatter_(
    self: Tensor,
    indices: Tensor,
    updates: Tensor,
    quant_scales: Tensor,
    quant_zero_points: Tensor | None = None,
    axis: int = -2,
    quant_axis: int = -1,
    reduce: str = "update",
    dst_type: int | None = None,
    round_mode: str | None = "rint",
) -> Tensor:
    """Write updates[i], quantized to int8 along the last dimension, into self[i] from position indices[i] of `axis` on
    (torch_npu-npu_quant_scatter_.md).
    """
    if reduce != "update" or indices.dim() != 1 or round_mode != "rint" or self.dtype != torch.int8:
        raise NoReferenceError("npu::npu_quant_scatter_", "other than int8 updates by one-dimensional indices")
    quantized = npu_quantize(
        updates,
        quant_scales.flatten(),
        None if quant_zero_points is None else quant_zero_points.flatten(),
        torch.qint8,
        quant_axis,
    )
    return scatter_update_(self, indices, quantized, axis)


@kernel("npu::npu_quant_scatter")
def npu_quant_scatter(
    self: Tensor,
    indices: Tensor,
    updates: Tensor,
    quant_scales: Tensor,
    quant_zero_points: Tensor | None = None,
    axis: int = -2,
    quant_axis: int = -1,
    reduce: str = "update",
    dst_type: int | None = None,
    round_mode: str | None = "rint",
) -> Tensor:
    settings = axis, quant_axis, reduce, dst_type, round_mode
    return npu_quant_scatter_(self.clone(), indices, updates, quant_scales, quant_zero_points, *settings)


@kernel("npu::npu_convert_weight_to_int4pack")
def npu_convert_weight_to_int4pack(weight: Tensor, inner_k_tiles: int = 0) -> Tensor:
    """int32 [..., n / 8] of integers [..., n] (torch_npu-npu_convert_weight_to_int4pack.md)."""
    if weight.dtype != torch.int32:
        raise NoReferenceError("npu::npu_convert_weight_to_int4pack", f"{weight.dtype}")
    return pack_int4(weight)


@kernel("npu::npu_trans_quant_param")
def npu_trans_quant_param(scale: Tensor, offset: Tensor | None = None, round_mode: int | None = 0) -> Tensor:
    """int64 that hold a float32 scale, cut to 19 bits, in bits 0 to 31, a one in bit 46, and the rounded offset in bits
    37 to 45 (torch_npu-npu_trans_quant_param.md).
    """
    if round_mode:
        raise NoReferenceError("npu::npu_trans_quant_param", "round_mode=1, whose rounding is not documented")
    bits = scale.float().contiguous().view(torch.int32).to(torch.int64) & 0xFFFFE000
    result = bits | (1 << 46)
    if offset is None:
        return result
    whole = offset.round().clamp(-256, 255).to(torch.int64)
    return (result & 0x4000FFFFFFFF) | ((whole & 0x1FF) << 37)


def scale_and_offset(scale: Tensor) -> tuple[Tensor, Tensor | None]:
    """Undo npu_trans_quant_param for an int64 scale; a float scale comes back without an offset."""
    if scale.dtype != torch.int64:
        return scale.float(), None
    low = scale & 0xFFFFFFFF
    bits = torch.where(low >= 2**31, low - 2**32, low).to(torch.int32)
    whole = (scale >> 37) & 0x1FF
    return bits.view(torch.float32), torch.where(whole > 255, whole - 512, whole).float()


def quantized(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Values as a matrix product returns them: rounded and saturated if `dtype` is int8, otherwise cast."""
    return _stored(values, dtype) if dtype == torch.int8 else values.to(dtype)
