"""Matrix products.

`aten::matmul` itself is PyTorch's composition of mm, mv, dot and bmm. torch_npu differentiates it with
`aten::matmul_backward`, which PyTorch has only for nested tensors; the formulas here are those of PyTorch's autograd
for the composition (aten/src/ATen/native/LinearAlgebra.cpp). Schemas: torch_npu 2.13.0; derivatives:
op_plugin/config/derivatives.yaml of Ascend/op-plugin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.precision import for_product
from npuport.sim.ops.registration import kernel


@kernel("aten::matmul_backward", lend=False)
def matmul_backward(
    grad: Tensor, self: Tensor, other: Tensor, mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of `matmul(self, other)`; `mask` says which of the two are wanted.

    Dimensions that the product has added are left to autograd to sum up, as op_plugin leaves them
    (ops/opapi/MatmulBackwardKernelNpuOpApi.cpp), for torch_npu's rules for DTensor count on their places: batches that
    were broadcast, and the 1 in [1, n], the gradient of a vector on the left.

    On tensors of the device: their products are the largest results of a training step, and are written there at once.
    """
    left, right, grad = for_product(self), for_product(other), for_product(grad)
    if other.dim() == 1:
        right, grad = right[:, None], grad.unsqueeze(-1)
    if self.dim() == 1:
        left, grad = left[None, :], grad.unsqueeze(-2)
    left_grad = _left_gradient(grad, left, right, self.shape).to(self.dtype) if mask[0] else None
    right_grad = _right_gradient(grad, left, right, other.shape).to(other.dtype) if mask[1] else None
    return left_grad, right_grad


def _rows(matrices: Tensor) -> Tensor:
    return matrices.reshape(math.prod(matrices.shape[:-1]), matrices.size(-1))


def _is_matrix(tensor: Tensor) -> bool:
    return all(size == 1 for size in tensor.shape[:-2])


def _left_gradient(grad: Tensor, left: Tensor, right: Tensor, shape: torch.Size) -> Tensor:
    if right.dim() == 2:
        return _rows(grad).mm(right.mH).view(*grad.shape[:-1], right.size(0))
    if _is_matrix(left):
        return _rows(right.mT).mH.mm(_rows(grad.mT)).mT.reshape(shape)
    return grad.matmul(right.mH)


def _right_gradient(grad: Tensor, left: Tensor, right: Tensor, shape: torch.Size) -> Tensor:
    if _is_matrix(right) and left.dim() > 2:
        return _rows(left).mH.mm(_rows(grad)).reshape(shape)
    if left.dim() == 2:
        product = _rows(grad.mT).mm(left.conj()).view(*grad.shape[:-2], grad.size(-1), left.size(-1)).mT
    else:
        product = left.mH.matmul(grad)
    return product.squeeze(-1) if len(shape) == 1 else product


@kernel("npu::matmul_double_backward")
def matmul_double_backward(
    grad_self: Tensor | None,
    grad_other: Tensor | None,
    grad_out: Tensor,
    self: Tensor,
    other: Tensor,
    mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Gradients of `matmul_backward` for (grad_out, self, other)."""

    def backward(grad: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        left_grad, right_grad = matmul_backward(grad, left, right, (True, True))
        assert left_grad is not None and right_grad is not None
        return left_grad, right_grad

    found = vector_jacobian(backward, (grad_out, self, other), (grad_self, grad_other))
    return tuple(gradient if wanted else None for gradient, wanted in zip(found, mask, strict=True))


@kernel("aten::mm.dtype")
def mm_dtype(self: Tensor, mat2: Tensor, out_dtype: torch.dtype) -> Tensor:
    """`torch.mm(..., out_dtype=...)`: the products are accumulated and returned in `out_dtype`."""
    return torch.mm(self.to(out_dtype), mat2.to(out_dtype))


@kernel("aten::mm.dtype_out")
def mm_dtype_out(self: Tensor, mat2: Tensor, out_dtype: torch.dtype, *, out: Tensor) -> Tensor:
    return out.copy_(mm_dtype(self, mat2, out_dtype))


@kernel("aten::bmm.dtype")
def bmm_dtype(self: Tensor, mat2: Tensor, out_dtype: torch.dtype) -> Tensor:
    return torch.bmm(self.to(out_dtype), mat2.to(out_dtype))


@kernel("aten::bmm.dtype_out")
def bmm_dtype_out(self: Tensor, mat2: Tensor, out_dtype: torch.dtype, *, out: Tensor) -> Tensor:
    return out.copy_(bmm_dtype(self, mat2, out_dtype))


@kernel("aten::addmm.dtype")
def addmm_dtype(
    self: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: torch.dtype, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return torch.addmm(self.to(out_dtype), mat1.to(out_dtype), mat2.to(out_dtype), beta=beta, alpha=alpha)


@kernel("aten::addmm.dtype_out")
def addmm_dtype_out(
    self: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: torch.dtype, *, beta: float = 1, alpha: float = 1, out: Tensor
) -> Tensor:
    return out.copy_(addmm_dtype(self, mat1, mat2, out_dtype, beta=beta, alpha=alpha))


@kernel("aten::baddbmm.dtype")
def baddbmm_dtype(
    self: Tensor, batch1: Tensor, batch2: Tensor, out_dtype: torch.dtype, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return torch.baddbmm(self.to(out_dtype), batch1.to(out_dtype), batch2.to(out_dtype), beta=beta, alpha=alpha)


@kernel("aten::baddbmm.dtype_out")
def baddbmm_dtype_out(
    self: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    out_dtype: torch.dtype,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor,
) -> Tensor:
    return out.copy_(baddbmm_dtype(self, batch1, batch2, out_dtype, beta=beta, alpha=alpha))


@kernel("npu::npu_linear")
def npu_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input·weightᵀ + bias (torch_npu-npu_linear.md)."""
    product = torch.nn.functional.linear(*(None if t is None else for_product(t) for t in (input, weight, bias)))
    return product.to(input.dtype)


@kernel("npu::npu_linear_backward")
def npu_linear_backward(grad: Tensor, input: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    upper = for_product(grad)
    dweight = _rows(upper).t() @ _rows(for_product(input))
    return (upper @ for_product(weight)).to(input.dtype), dweight.to(weight.dtype)


@kernel("npu::npu_bmmV2")
def npu_bmm_v2(input: Tensor, mat2: Tensor, output_sizes: Sequence[int]) -> Tensor:
    """matmul, then a view as `output_sizes` unless that is empty (torch_npu-npu_bmmV2.md)."""
    product = torch.matmul(for_product(input), for_product(mat2)).to(input.dtype)
    return product.reshape(list(output_sizes)) if output_sizes else product


@kernel("npu::npu_bmm_v2_mat1_backward")
def npu_bmm_v2_mat1_backward(grad: Tensor, mat1: Tensor, mat2: Tensor, size: Sequence[int]) -> Tensor | None:
    return matmul_backward(_as_product(grad, mat1, mat2), mat1, mat2, (True, False))[0]


@kernel("npu::npu_bmm_v2_mat2_backward")
def npu_bmm_v2_mat2_backward(grad: Tensor, mat1: Tensor, mat2: Tensor, size: Sequence[int]) -> Tensor | None:
    return matmul_backward(_as_product(grad, mat1, mat2), mat1, mat2, (False, True))[1]


def _as_product(grad: Tensor, mat1: Tensor, mat2: Tensor) -> Tensor:
    shape = torch.matmul(mat1.to("meta"), mat2.to("meta")).shape
    return grad.reshape(shape)
