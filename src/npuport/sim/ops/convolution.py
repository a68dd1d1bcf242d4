"""Convolutions under torch_npu's own names; all are torch.nn.functional's (op_plugin/ops/aclops: Conv2dKernelNpu.cpp
and others).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.precision import for_product
from npuport.sim.ops.registration import kernel

_Grads = tuple[Tensor | None, Tensor | None, Tensor | None]


@kernel("npu::npu_conv2d", "npu::npu_conv3d", "npu::npu_convolution")
def npu_convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """As torch.convolution; of longer lists the first elements count, one for each spatial dimension."""
    return _forward(input, weight, bias, stride, padding, dilation, groups, None)


@kernel("npu::npu_conv2d_backward", "npu::npu_conv3d_backward", "npu::npu_convolution_backward")
def npu_convolution_backward(
    input: Tensor,
    grad_output: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> _Grads:
    """(dinput, dweight, dbias)."""
    return _backward(grad_output, input, weight, stride, padding, dilation, groups, output_mask, None)


@kernel("npu::npu_conv_transpose2d", "npu::npu_convolution_transpose")
def npu_convolution_transpose(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    padding: Sequence[int],
    output_padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    return _forward(input, weight, bias, stride, padding, dilation, groups, output_padding)


@kernel(
    "npu::npu_conv_transpose2d_backward",
    "npu::npu_conv_transpose3d_backward",
    "npu::npu_convolution_transpose_backward",
)
def npu_convolution_transpose_backward(
    input: Tensor,
    grad_output: Tensor,
    weight: Tensor,
    padding: Sequence[int],
    output_padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> _Grads:
    """(dinput, dweight, dbias)."""
    return _backward(grad_output, input, weight, stride, padding, dilation, groups, output_mask, output_padding)


def _forward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_padding: Sequence[int] | None,
) -> Tensor:
    """Transposed if there is an `output_padding`."""
    dims = weight.dim() - 2
    sizes = (list(sizes)[:dims] for sizes in (stride, padding, dilation))
    extra = [0] * dims if output_padding is None else list(output_padding)[:dims]
    tensors = for_product(input), for_product(weight), None if bias is None else for_product(bias)
    return torch.convolution(*tensors, *sizes, output_padding is not None, extra, groups).to(input.dtype)


def _backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
    output_padding: Sequence[int] | None,
) -> _Grads:
    """Transposed if there is an `output_padding`."""
    transposed = output_padding is not None
    channels = weight.size(1) * groups if transposed else weight.size(0)
    extra = output_padding if output_padding is not None else [0] * (weight.dim() - 2)
    return _convolution_backward(
        grad_output, input, weight, [channels], stride, padding, dilation, transposed, extra, groups, output_mask
    )


def _convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> _Grads:
    dims = weight.dim() - 2
    found = torch.ops.aten.convolution_backward(
        for_product(grad_output),
        for_product(input),
        for_product(weight),
        bias_sizes,
        list(stride)[:dims],
        list(padding)[:dims],
        list(dilation)[:dims],
        transposed,
        list(output_padding)[:dims],
        groups,
        list(output_mask),
    )
    dinput, dweight, dbias = (None if f is None else f.to(input.dtype) for f in found)
    return dinput, dweight, dbias


@kernel("aten::_conv_depthwise2d")
def conv_depthwise2d(
    self: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Convolution with one group per input channel."""
    return npu_convolution(self, weight, bias, stride, padding, dilation, self.size(1))


@kernel("aten::_conv_depthwise2d.out")
def conv_depthwise2d_out(
    self: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    *,
    out: Tensor,
) -> Tensor:
    found = conv_depthwise2d(self, weight, kernel_size, bias, stride, padding, dilation)
    return out.resize_(found.shape).copy_(found)


@kernel("npu::_conv_depthwise2d_backward")
def conv_depthwise2d_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None]:
    mask = [*output_mask, False]
    return _backward(grad_output, input, weight, stride, padding, dilation, input.size(1), mask, None)[:2]


@kernel("npu::slow_conv_dilated2d_backward")
def slow_conv_dilated2d_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_mask: Sequence[bool],
) -> _Grads:
    return _backward(grad_output, input, weight, stride, padding, dilation, 1, output_mask, None)


@kernel("npu::slow_conv_transpose2d_backward")
def slow_conv_transpose2d_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
    output_mask: Sequence[bool],
) -> _Grads:
    return _backward(grad_output, input, weight, stride, padding, dilation, 1, output_mask, output_padding)


@kernel("npu::npu_conv2d.out", "npu::npu_conv3d.out")
def npu_convolution_out(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    *,
    out: Tensor,
) -> Tensor:
    found = npu_convolution(input, weight, bias, stride, padding, dilation, groups)
    return out.resize_(found.shape).copy_(found)
