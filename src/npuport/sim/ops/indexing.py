"""Backward operators and small variants of indexing, selection and reduction (schemas: torch_npu 2.13.0;
op_plugin/config/derivatives.yaml).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.registration import AUTOGRAD, kernel
from npuport.sim.ops.unavailable import NoReferenceError


@kernel("npu::npu_gather_backward")
def npu_gather_backward(grad: Tensor, self_size: Sequence[int], dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    """Gradient of torch.gather for its input."""
    if sparse_grad:
        raise NoReferenceError("npu::npu_gather_backward", "sparse_grad=True")
    return grad.new_zeros(list(self_size)).scatter_add_(dim, index, grad)


@kernel("npu::repeat_interleave_backward_int")
def repeat_interleave_backward_int(grad: Tensor, input: Tensor, repeats: int, dim: int | None = None) -> Tensor | None:
    return vector_jacobian(lambda x: torch.repeat_interleave(x, repeats, dim), (input,), (grad,))[0]


@kernel("npu::repeat_interleave_backward_tensor")
def repeat_interleave_backward_tensor(
    grad: Tensor, input: Tensor, repeats: Tensor, dim: int | None = None
) -> Tensor | None:
    return vector_jacobian(lambda x: torch.repeat_interleave(x, repeats, dim), (input,), (grad,))[0]


@kernel("npu::npu_renorm_backward")
def npu_renorm_backward(grad: Tensor, input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor | None:
    return vector_jacobian(lambda x: torch.renorm(x, p, dim, maxnorm), (input,), (grad,))[0]


@kernel("npu::npu_max.dim")
def npu_max(input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """torch.max with int32 indices (op_plugin/ops/aclops/MaxV1KernelNpu.cpp)."""
    values, indices = torch.max(input, dim, keepdim)
    return values, indices.to(torch.int32)


@kernel("npu::npu_min.dim")
def npu_min(input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """torch.min with int32 indices."""
    values, indices = torch.min(input, dim, keepdim)
    return values, indices.to(torch.int32)


@kernel("npu::npu_max_backward", "npu::npu_min_backward")
def npu_extreme_backward(grad: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool) -> Tensor:
    """The gradient goes to the element that was chosen."""
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(list(sizes)).scatter_(dim, indices.long(), grad)


@kernel("aten::one_hot", keys=(AUTOGRAD,), lend=False)
def one_hot_of_any(input: Tensor, num_classes: int = -1) -> Tensor:
    """torch_npu answers the autograd key itself, so tensors of Python classes (DTensor, FakeTensor) come here. Of those
    it makes a comparison, always int64.

    Source: op_plugin's ops/opapi/OneHotKernelNpuOpApi.cpp.
    """
    if not torch._C._dispatch_keys(input).has(torch._C.DispatchKey.Python):
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.aten.one_hot.default(input, num_classes)
    if num_classes == -1:
        raise RuntimeError("FakeTensorMode does not support num_classes == -1.")
    from torch.distributed.tensor.experimental import implicit_replication

    with implicit_replication():
        classes = torch.arange(num_classes, device=input.device)
        return torch.eq(input.unsqueeze(-1), classes).long()


@kernel("aten::one_hot")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """torch.nn.functional.one_hot in the dtype of ``input``, int32 or int64.

    Source: op_plugin's test/test_base_ops/test_one_hot.py.
    """
    return functional.one_hot(input.long(), num_classes).to(input.dtype)


@kernel("npu::npu_one_hot")
def npu_one_hot(
    input: Tensor, num_classes: int = -1, depth: int = 1, on_value: float = 1, off_value: float = 0
) -> Tensor:
    """float32 one-hot along a new last axis of size `depth`; classes outside it give `off_value` rows
    (torch_npu-npu_one_hot.md).

    `num_classes` is the axis, as the page says; only the last one has a reference.
    """
    if num_classes != -1:
        raise NoReferenceError("npu::npu_one_hot", f"axis {num_classes}")
    chosen = input.unsqueeze(-1) == torch.arange(depth)
    return torch.where(chosen, float(on_value), float(off_value)).to(torch.float32)


@kernel("npu::npu_gather_sparse_index")
def npu_gather_sparse_index(input: Tensor, index: Tensor) -> Tensor:
    """input[index] for a matrix of embeddings (torch_npu-npu_gather_sparse_index.md)."""
    return input[index]


@kernel("npu::npu_gather_sparse_index_backward")
def npu_gather_sparse_index_backward(grad: Tensor, self_sizes: Sequence[int], index: Tensor) -> Tensor:
    rows = grad.reshape(-1, *list(self_sizes)[1:])
    return grad.new_zeros(list(self_sizes)).index_add_(0, index.flatten(), rows)


@kernel("npu::scatter_update_")
def scatter_update_(input: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    """Write updates[i] into input[i] from position indices[i] of `axis` on (torch_npu-scatter_update.md)."""
    length = updates.size(axis)
    for row, start in enumerate(indices.tolist()):
        input[row].narrow(axis % input.dim() - 1, start, length).copy_(updates[row])
    return input


@kernel("npu::scatter_update")
def scatter_update(input: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    return scatter_update_(input.clone(), indices, updates, axis)


@kernel("npu::npu_indexing")
def npu_indexing(
    input: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """input[begin:end:strides]; bit i of begin_mask or end_mask drops that bound of dimension i
    (torch_npu-npu_indexing.md).
    """
    if ellipsis_mask or new_axis_mask or shrink_axis_mask:
        raise NoReferenceError("npu::npu_indexing", "ellipsis_mask, new_axis_mask or shrink_axis_mask")
    bounds = zip(begin, end, strides, strict=True)
    slices = [
        slice(None if begin_mask >> i & 1 else start, None if end_mask >> i & 1 else stop, step)
        for i, (start, stop, step) in enumerate(bounds)
    ]
    return input[tuple(slices)].clone()


@kernel("npu::npu_sort_v2")
def npu_sort_v2(input: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """Sorted values, without indices (torch_npu-npu_sort_v2.md)."""
    return torch.sort(input, dim, descending)[0]


@kernel("npu::_npu_index_add")
def npu_index_add(input: Tensor, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """input with source rows added at index (GatherSparseBackwardNpuOpApi.cpp uses it with whole index tensors)."""
    rows = source.reshape(-1, *input.shape[1:])
    return input.index_add(0, index.flatten(), rows, alpha=alpha)


@kernel("npu::_npu_index_add_")
def npu_index_add_(input: Tensor, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    return input.copy_(npu_index_add(input, index, source, alpha=alpha))


@kernel("npu::npu_indexing.out")
def npu_indexing_out(
    input: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    *,
    out: Tensor,
) -> Tensor:
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    found = npu_indexing(input, begin, end, strides, *masks)
    return out.resize_(found.shape).copy_(found)


@kernel("npu::npu_sort_v2.out")
def npu_sort_v2_out(input: Tensor, dim: int = -1, descending: bool = False, *, out: Tensor) -> Tensor:
    return out.resize_(input.shape).copy_(npu_sort_v2(input, dim, descending))
