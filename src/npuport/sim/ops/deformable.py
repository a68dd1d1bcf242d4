"""Deformable convolution (torch_npu-npu_deformable_conv2d.md; op_plugin/ops/aclops/DeformableConv2dKernelNpu.cpp).

The operator samples the input at shifted positions into an image of one kernel patch per output pixel, and convolves
that with a stride of the kernel's size. The order of the offsets is that of the golden functions in op-plugin's
test_deformable_conv2d.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel


@dataclass(frozen=True)
class _Sampling:
    """Where the patches of a convolution lie; pairs are (height, width)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    start: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    modulated: bool


def _sampling(
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    deformable_groups: int,
    modulated: bool,
) -> _Sampling:
    """`stride` and `dilation` are [N, C, H, W], `padding` is [top, bottom, left, right]."""
    for name, values in (("stride", stride), ("dilation", dilation)):
        if len(values) < 4:
            raise RuntimeError(f"{name} has to contain more than 4 elements, but got {len(values)}")
    return _Sampling(
        (kernel_size[0], kernel_size[1]),
        (stride[2], stride[3]),
        (-padding[0], -padding[2]),
        (dilation[2], dilation[3]),
        deformable_groups,
        modulated,
    )


def _positions(axis: int, outputs: int, how: _Sampling) -> Tensor:
    """[outputs, kernel]: coordinates along one axis of an ordinary convolution."""
    out = torch.arange(outputs) * how.stride[axis] + how.start[axis]
    return out[:, None] + torch.arange(how.kernel[axis]) * how.dilation[axis]


def _pixels(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Values of image [N, C, H, W] at integer positions y, x [N, …], 0 outside: [N, C, …]."""
    height, width = image.shape[-2:]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    flat = (y.clamp(0, height - 1) * width + x.clamp(0, width - 1)).flatten(1).long()
    values = image.flatten(2).gather(2, flat[:, None].expand(-1, image.size(1), -1))
    return values.view(*image.shape[:2], *y.shape[1:]) * inside[:, None]


def _bilinear(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    top, left = y.detach().floor(), x.detach().floor()
    down, right = (y - top)[:, None], (x - left)[:, None]
    return (
        (1 - down) * (1 - right) * _pixels(image, top, left)
        + (1 - down) * right * _pixels(image, top, left + 1)
        + down * (1 - right) * _pixels(image, top + 1, left)
        + down * right * _pixels(image, top + 1, left + 1)
    )


def _sampled(input: Tensor, offset: Tensor, how: _Sampling) -> Tensor:
    """[N, C, out_h·k_h, out_w·k_w]: the input at the shifted positions, times the mask if there is one.

    `offset` [N, parts·groups·k_h·k_w, out_h, out_w]: all shifts in x, then all in y, then all masks.
    """
    batch, channels = input.shape[:2]
    (k_h, k_w), (out_h, out_w) = how.kernel, offset.shape[2:]
    parts = 3 if how.modulated else 2
    # [parts, N·groups, out_h, k_h, out_w, k_w], the order of the result
    offsets = offset.view(batch, parts, how.groups, k_h, k_w, out_h, out_w).permute(1, 0, 2, 5, 3, 6, 4)
    offsets = offsets.reshape(parts, batch * how.groups, out_h, k_h, out_w, k_w)
    y = offsets[1] + _positions(0, out_h, how)[None, :, :, None, None]
    x = offsets[0] + _positions(1, out_w, how)[None, None, None, :, :]
    image = input.reshape(batch * how.groups, channels // how.groups, *input.shape[2:])
    values = _bilinear(image, y, x)
    if how.modulated:
        values = values * offsets[2][:, None]
    return values.reshape(batch, channels, out_h * k_h, out_w * k_w)


def _require_4d(input: Tensor, offset: Tensor) -> None:
    for name, tensor in (("input", input), ("offset", offset)):
        if tensor.dim() < 4:
            raise RuntimeError(f"{name} has to be more than 4D, but got Tensor of dimension {tensor.dim()}")


@kernel("npu::npu_deformable_conv2d")
def npu_deformable_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1, 1, 1, 1),
    groups: int = 1,
    deformable_groups: int = 1,
    modulated: bool = True,
) -> tuple[Tensor, Tensor]:
    """(result [N, out_channels, out_h, out_w], sampled input [N, channels, out_h·k_h, out_w·k_w]), both float32."""
    _require_4d(input, offset)
    how = _sampling(kernel_size, stride, padding, dilation, deformable_groups, modulated)
    sampled = _sampled(wide(input), wide(offset), how)
    wide_bias = None if bias is None else wide(bias)
    return functional.conv2d(sampled, wide(weight), wide_bias, stride=how.kernel, groups=groups), sampled


@kernel("npu::npu_deformable_conv2dbk")
def npu_deformable_conv2dbk(
    input: Tensor,
    grad_output: Tensor,
    offset_out: Tensor,
    weight: Tensor,
    offset: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int] = (1, 1, 1, 1),
    groups: int = 1,
    deformable_groups: int = 1,
    modulated: bool = True,
) -> tuple[Tensor, ...]:
    """Gradients for (input, weight, offset, bias), float32; `offset_out` is the sampled input of the forward pass."""
    _require_4d(input, offset)
    how = _sampling(kernel_size, stride, padding, dilation, deformable_groups, modulated)

    def convolve(sampled: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        return functional.conv2d(sampled, kernel, bias, stride=how.kernel, groups=groups)

    bias = wide(weight).new_zeros(weight.size(0))
    convolved = vector_jacobian(convolve, (wide(offset_out), wide(weight), bias), (wide(grad_output),))
    sampled = vector_jacobian(lambda i, o: _sampled(i, o, how), (wide(input), wide(offset)), convolved[:1])
    found = (sampled[0], convolved[1], sampled[1], convolved[2])
    return tuple(f for f in found if f is not None)
