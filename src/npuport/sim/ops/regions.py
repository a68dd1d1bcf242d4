"""Features of regions of interest: ROI align and position-sensitive ROI pooling.

Code that calls the device operators: op_plugin/ops/aclops/{RoiAlign,RoiAlignBackward,PsRoiPooling}KernelNpu.cpp of
Ascend/op-plugin. Maths: CANN's ops-cv, objdetect/roi_align_grad/README.md and the golden function of PSROIPoolingV2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel

_TENSORFLOW, _PYTORCH, _MMDETECTION = 1, 2, 3
_SMALLEST_POOLED_SIDE = 0.1


def _interpolation(at: Tensor, size: int) -> Tensor:
    """[samples, size]: weights of linear interpolation at coordinates, 0 outside [-1, size]; the border is extended."""
    clamped = at.clamp(0, size - 1)
    weights = (1 - (clamped[:, None] - torch.arange(size, dtype=at.dtype)).abs()).clamp(min=0)
    return weights * ((at >= -1) & (at <= size))[:, None]


def _pooling(start: Tensor, length: Tensor, bins: int, samples: int, size: int) -> Tensor:
    """[bins, size]: weights with which one axis of a feature map enters each bin of a region: the mean of
    evenly spaced samples.
    """
    count = samples if samples > 0 else max(int(torch.ceil(length / bins)), 1)
    step = length / bins
    offsets = torch.arange(bins, dtype=start.dtype)[:, None] + (torch.arange(count, dtype=start.dtype) + 0.5) / count
    return _interpolation((start + offsets * step).flatten(), size).view(bins, count, size).mean(dim=1)


def _region(roi: Tensor, scale: float, mode: int) -> tuple[Tensor, Tensor]:
    """(start, length) of a region (x1, y1, x2, y2) on the feature map, as (x, y) pairs.

    Modes: 0 as they are, 1 the end counts as a pixel (TensorFlow), 2 and 3 shifted by half a pixel (PyTorch,
    mmdetection); 0 and 1 make a region at least 1 long.
    """
    first, last = roi[:2] * scale, roi[2:] * scale
    if mode == _TENSORFLOW:
        last = last + scale
    if mode in (_PYTORCH, _MMDETECTION):
        return first - 0.5, last - first
    return first, (last - first).clamp(min=1)


def _roi_align(
    features: Tensor, rois: Tensor, scale: float, height: int, width: int, samples: int, mode: int
) -> Tensor:
    pooled = []
    for row in rois.to(features.dtype):
        index, roi = int(row[0]), row[1:]
        if not 0 <= index < features.size(0):
            pooled.append(features.new_zeros(features.size(1), height, width))
            continue
        start, length = _region(roi, scale, mode)
        rows = _pooling(start[1], length[1], height, samples, features.size(2))
        columns = _pooling(start[0], length[0], width, samples, features.size(3))
        pooled.append(rows @ features[index] @ columns.t())
    return torch.stack(pooled) if pooled else features.new_zeros(0, features.size(1), height, width)


@kernel("npu::npu_roi_align")
def npu_roi_align(
    self: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sample_num: int,
    roi_end_mode: int,
) -> Tensor:
    """[n, C, pooled_height, pooled_width] for features [B, C, H, W] and regions [n, 5] (image, x1, y1, x2, y2): means
    of sample_num² bilinear samples a bin, of as many as the bin has pixels if 0 (torch_npu-npu_roi_align.md).
    """
    if rois.dim() < 1 or self.dim() < 2:
        raise RuntimeError("The dim of input tensor [self] is less than 2.")
    half = torch.float16 in (self.dtype, rois.dtype)
    found = _roi_align(wide(self), rois, spatial_scale, pooled_height, pooled_width, sample_num, roi_end_mode)
    return found.half() if half else found


@kernel("npu::npu_roi_alignbk")
def npu_roi_alignbk(
    self: Tensor,
    rois: Tensor,
    xdiff_shape: Sequence[int],
    pooled_width: int,
    pooled_height: int,
    spatial_scale: float,
    sample_num: int,
    roi_end_mode: int | None = None,
) -> Tensor:
    """Gradient for features of `xdiff_shape`, given that of the result (`self`); ROIAlignGrad defaults to mode 1."""
    mode = _TENSORFLOW if roi_end_mode is None else roi_end_mode

    def align(features: Tensor) -> Tensor:
        return _roi_align(features, rois, spatial_scale, pooled_height, pooled_width, sample_num, mode)

    grad = wide(self)
    features = grad.new_zeros(list(xdiff_shape))
    found = vector_jacobian(align, (features,), (grad,))[0] if self.numel() else features
    assert found is not None
    return found.to(self.dtype)


def _bin_masks(start: Tensor, end: Tensor, bins: int, size: int) -> Tensor:
    """[bins, size]: the pixels from ⌊lower bound⌋ to ⌈upper bound⌉ of each bin."""
    step = (end - start).clamp(min=_SMALLEST_POOLED_SIDE) / bins
    bounds = torch.arange(bins + 1, dtype=start.dtype) * step + start
    lower, upper = bounds[:-1].floor().clamp(0, size), bounds[1:].ceil().clamp(0, size)
    pixels = torch.arange(size)
    return ((pixels >= lower[:, None]) & (pixels < upper[:, None])).to(start.dtype)


def _ps_roi_pooling(features: Tensor, rois: Tensor, scale: float, group: int, output_dim: int) -> Tensor:
    """Regions are rounded to pixels, their last one included, then scaled."""
    images, _, height, width = features.shape
    maps = features.view(images, output_dim, group, group, height, width)
    pooled = []
    for row in rois.double().round().permute(0, 2, 1).reshape(-1, 5):
        image = int(row[0])
        if not 0 <= image < images:
            pooled.append(features.new_zeros(output_dim, group, group))
            continue
        first, last = row[1:3] * scale, (row[3:] + 1) * scale
        rows = _bin_masks(first[1], last[1], group, height).to(features.dtype)
        columns = _bin_masks(first[0], last[0], group, width).to(features.dtype)
        area = rows.sum(dim=1)[:, None] * columns.sum(dim=1)
        total = torch.einsum("dijhw,ih,jw->dij", maps[image], rows, columns)
        pooled.append(total / area.clamp(min=1))
    return torch.stack(pooled)


@kernel("npu::npu_ps_roi_pooling")
def npu_ps_roi_pooling(self: Tensor, rois: Tensor, spatial_scale: float, group_size: int, output_dim: int) -> Tensor:
    """[B·n, output_dim, group, group]: bin (i, j) is the mean over its pixels of channel (·, i, j) of features
    [B, output_dim·group², H, W]; regions [B, 5, n] are (image, x1, y1, x2, y2) (torch_npu-npu_ps_roi_pooling.md).

    A region of an image that does not exist gives zeros, as recorded in op-plugin's test_ps_roi_pooling.py.
    """
    if rois.dim() < 3:
        raise RuntimeError(f"rois only supports at least 3D tensors, rois got: {rois.dim()}D")
    return _ps_roi_pooling(wide(self), rois, spatial_scale, group_size, output_dim).to(self.dtype)


@kernel("npu::npu_ps_roi_pooling_backward")
def npu_ps_roi_pooling_backward(
    output_grad: Tensor,
    rois: Tensor,
    spatial_scale: float,
    group_size: int,
    output_dim: int,
    input_size: Sequence[int],
) -> Tensor:
    """Gradient for the features; `input_size` is (H, W)."""

    def pool(features: Tensor) -> Tensor:
        return _ps_roi_pooling(features, rois, spatial_scale, group_size, output_dim)

    grad = wide(output_grad)
    features = grad.new_zeros(rois.size(0), group_size**2 * output_dim, *input_size)
    found = vector_jacobian(pool, (features,), (grad,))[0]
    assert found is not None
    return found.to(output_grad.dtype)
