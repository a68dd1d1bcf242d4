"""Products (op-plugin docs: npu_linear, npu_bmmV2, npu_fused_matmul, npu_transpose_batchmatmul, npu_grouped_matmul) and
convolutions (npu_conv2d, npu_conv3d, npu_convolution, their transposes and backward operators)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from npuport.precision.references.formulas import formula, gradients, refuse, wanted


@formula("npu.npu_linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product = input @ weight.transpose(0, 1)
    return product if bias is None else product + bias


@formula("npu.npu_linear_backward")
def linear_backward(grad: Tensor, input: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    return grad @ weight, grad.flatten(0, -2).transpose(0, 1) @ input.flatten(0, -2)


@formula("aten.matmul_backward")
def matmul_backward(
    grad: Tensor, self: Tensor, other: Tensor, mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Batches that were broadcast, and the 1 that a vector gets, stay in the results of op-plugin
    (MatmulBackwardKernelNpuOpApi.cpp): they are not covered."""
    if self.dim() == 1 or other.dim() == 1 or not _has_same_batches(self, other):
        refuse("shape", (tuple(self.shape), tuple(other.shape)))
    one, two = wanted(gradients(torch.matmul, [self, other], grad), mask)
    return one, two


def _has_same_batches(left: Tensor, right: Tensor) -> bool:
    return right.dim() == 2 or left.dim() == 2 or list(left.shape[:-2]) == list(right.shape[:-2])


@formula("npu.npu_bmmV2")
def bmm_v2(input: Tensor, mat2: Tensor, output_sizes: Sequence[int]) -> Tensor:
    product = input @ mat2
    return product.reshape(tuple(output_sizes)) if output_sizes else product


@formula("npu.npu_bmm_v2_mat1_backward")
def bmm_v2_mat1_backward(grad: Tensor, mat1: Tensor, mat2: Tensor, size: Sequence[int]) -> Tensor:
    return gradients(lambda one: one @ mat2, [mat1], grad)[0]


@formula("npu.npu_bmm_v2_mat2_backward")
def bmm_v2_mat2_backward(grad: Tensor, mat1: Tensor, mat2: Tensor, size: Sequence[int]) -> Tensor:
    return gradients(lambda two: mat1 @ two, [mat2], grad)[0]


@formula("npu.npu_fused_matmul")
def fused_matmul(
    x1: Tensor, x2: Tensor, *, bias: Tensor | None = None, x3: Tensor | None = None, fused_op_type: str = ""
) -> Tensor:
    product = x1 @ x2 if bias is None else x1 @ x2 + bias
    refuse("fused_op_type", fused_op_type, "", "16cast32", "relu", "add", "mul", "gelu_erf", "gelu_tanh")
    if fused_op_type in ("add", "mul") and x3 is not None:
        return product + x3 if fused_op_type == "add" else product * x3
    if fused_op_type == "relu":
        return product.clamp(min=0)
    if fused_op_type.startswith("gelu"):
        return functional.gelu(product, approximate="tanh" if fused_op_type == "gelu_tanh" else "none")
    return product


@formula("npu.npu_transpose_batchmatmul")
def transpose_batchmatmul(
    input: Tensor,
    weight: Tensor,
    *,
    bias: Tensor | None = None,
    scale: Tensor | None = None,
    perm_x1: Sequence[int] | None = None,
    perm_x2: Sequence[int] | None = None,
    perm_y: Sequence[int] | None = None,
    batch_split_factor: int | None = 1,
) -> Tensor:
    refuse("bias", bias)
    refuse("scale", scale)
    refuse("batch_split_factor", batch_split_factor, 1)
    left, right = input.permute(tuple(perm_x1 or (0, 1, 2))), weight.permute(tuple(perm_x2 or (0, 1, 2)))
    return (left @ right).permute(tuple(perm_y or (1, 0, 2)))


_PLAIN = ("bias", "group_list", "split_item", "group_type", "group_list_type", "act_type")


@formula("npu.npu_grouped_matmul", "npu.npu_grouped_matmul.List")
def grouped_matmul(x: Sequence[Tensor], weight: Sequence[Tensor], **named: Any) -> list[Tensor]:
    """One product for each group of rows: groups are the tensors of a list, or rows of one tensor by ``group_list``
    (ends of the groups, or with ``group_list_type`` 1 their sizes)."""
    for name in named.keys() - set(_PLAIN):
        refuse(name, named[name] if named[name] != [] else None)
    refuse("act_type", named.get("act_type"), 0)
    refuse("group_type", named.get("group_type"), -1, 0)
    refuse("split_item", named.get("split_item"), 0, 1, 2, 3)
    refuse("group_list_type", named.get("group_list_type"), 0, 1)
    bias = list(named.get("bias") or [])
    sizes = _group_sizes(named.get("group_list"), named.get("group_list_type") or 0)
    rows = list(x)
    weights = list(weight[0]) if len(weight) == 1 and weight[0].dim() == 3 else list(weight)
    biases: list[Tensor | None] = list(bias[0]) if len(bias) == 1 and bias[0].dim() == 2 else list(bias)
    is_one = len(rows) == 1 and len(weights) > 1
    if is_one:
        if sizes is None or sum(sizes) != len(rows[0]):
            refuse("group_list", sizes)
        rows = list(rows[0].split(sizes))
    if len(rows) != len(weights):
        refuse("weight", [tuple(one.shape) for one in weight])
    biases = biases or [None] * len(rows)
    made = [
        one @ matrix if offset is None else one @ matrix + offset
        for one, matrix, offset in zip(rows, weights, biases, strict=True)
    ]
    is_joined = (named.get("split_item") or 0) in (2, 3)
    return [torch.cat(made)] if is_joined else made


@formula("npu.npu_grouped_matmul_add", "npu.npu_grouped_matmul_add_")
def grouped_matmul_add(
    input: Tensor,
    x: Tensor,
    weight: Tensor,
    group_list: Tensor,
    *,
    transpose_x: bool = True,
    transpose_weight: bool = False,
    group_type: int = 2,
    group_list_type: int | None = 0,
) -> Tensor:
    """The gradients of the weights of all groups, added to ``input``."""
    refuse("transpose_x", transpose_x, True)
    refuse("transpose_weight", transpose_weight, False)
    refuse("group_type", group_type, 2)
    sizes = _group_sizes(group_list, group_list_type or 0) or []
    pairs = zip(x.split(sizes), weight.split(sizes), strict=True)
    return input + torch.stack([one.transpose(0, 1) @ two for one, two in pairs]).reshape(input.shape)


def _group_sizes(groups: Tensor | Sequence[int] | None, kind: int) -> list[int] | None:
    if groups is None:
        return None
    numbers = [int(one) for one in (groups.tolist() if isinstance(groups, Tensor) else groups)]
    return numbers if kind == 1 else [end - start for start, end in zip([0, *numbers[:-1]], numbers, strict=True)]


def _convolved(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    options = [list(one) for one in (stride, padding, dilation)]
    zeros = [0] * len(options[0])
    return torch.convolution(x, weight, bias, options[0], options[1], options[2], False, zeros, groups)


@formula("npu.npu_conv2d", "npu.npu_conv3d", "npu.npu_convolution")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    return _convolved(input, weight, bias, stride, padding, dilation, groups)


@formula("npu.npu_conv2d_backward", "npu.npu_conv3d_backward", "npu.npu_convolution_backward")
def convolution_backward(
    input: Tensor,
    grad_output: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    def forward(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        return _convolved(x, kernel, bias, stride, padding, dilation, groups)

    zero = weight.new_zeros(weight.size(0))
    return wanted(gradients(forward, [input, weight, zero], grad_output), output_mask)


def _transposed(
    x: Tensor, weight: Tensor, bias: Tensor | None, padding: Any, more: Any, stride: Any, dilation: Any, groups: int
) -> Tensor:
    options = [list(one) for one in (stride, padding, dilation, more)]
    return torch.convolution(x, weight, bias, options[0], options[1], options[2], True, options[3], groups)


@formula("npu.npu_conv_transpose2d", "npu.npu_convolution_transpose")
def conv_transpose(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    padding: Sequence[int],
    output_padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    return _transposed(input, weight, bias, padding, output_padding, stride, dilation, groups)


@formula(
    "npu.npu_conv_transpose2d_backward", "npu.npu_conv_transpose3d_backward", "npu.npu_convolution_transpose_backward"
)
def conv_transpose_backward(
    input: Tensor,
    grad_output: Tensor,
    weight: Tensor,
    padding: Sequence[int],
    output_padding: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    def forward(x: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        return _transposed(x, kernel, bias, padding, output_padding, stride, dilation, groups)

    zero = weight.new_zeros(weight.size(1) * groups)
    return wanted(gradients(forward, [input, weight, zero], grad_output), output_mask)


@formula("aten._conv_depthwise2d")
def conv_depthwise2d(
    self: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None, stride: Any, padding: Any, dilation: Any
) -> Tensor:
    return _convolved(self, weight, bias, stride, padding, dilation, self.size(1))


@formula("npu._conv_depthwise2d_backward")
def conv_depthwise2d_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    def forward(x: Tensor, kernel: Tensor) -> Tensor:
        return _convolved(x, kernel, None, stride, padding, dilation, input.size(1))

    return wanted(gradients(forward, [input, weight], grad_output), output_mask)


@formula("aten.mm.dtype", "aten.bmm.dtype")
def product_in_dtype(self: Tensor, mat2: Tensor, out_dtype: Any) -> Tensor:
    return self @ mat2


@formula("aten.addmm.dtype", "aten.baddbmm.dtype")
def added_product_in_dtype(
    self: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: Any, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return beta * self + alpha * (mat1 @ mat2)
