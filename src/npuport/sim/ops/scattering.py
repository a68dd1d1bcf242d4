"""Writing into tensors at given positions (docs/zh/custom_APIs/torch_npu of Ascend/op-plugin)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


@kernel("npu::npu_scatter")
def npu_scatter(self: Tensor, indices: Tensor, updates: Tensor, dim: int) -> Tensor:
    """A copy of `self` where one element along `dim` is updates[…] at indices[…], for every position in the other
    dimensions (the page torch_npu.npu_scatter of CANN 7.0).
    """
    return self.scatter(dim, indices.long().unsqueeze(dim), updates.unsqueeze(dim))


@kernel("npu::npu_scatter_nd_update_")
def npu_scatter_nd_update_(self: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """self[indices[i]] = updates[i], where the last dimension of `indices` [..., k] counts through the first k
    dimensions of `self` (torch_npu-npu_scatter_nd_update_.md). No index may be out of range.
    """
    if indices.dim() < 2 or indices.size(-1) > self.dim():
        raise RuntimeError(
            "npu_scatter_nd_update: indices needs at least 2 dimensions, the last not larger than the dimensions of "
            f"self, but has the shape {list(indices.shape)} for self {list(self.shape)}"
        )
    return self.index_put_(tuple(indices.long().unbind(-1)), updates)


@kernel("npu::npu_scatter_nd_update")
def npu_scatter_nd_update(self: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return npu_scatter_nd_update_(self.clone(), indices, updates)


@kernel("npu::npu_scatter_list_")
def npu_scatter_list_(
    self: Sequence[Tensor],
    indices: Tensor,
    updates: Tensor,
    mask: Tensor | None = None,
    reduce: str = "update",
    axis: int = -2,
) -> None:
    """Write updates[i] into self[i] from position indices[i] of `axis` on, where mask[i] is not 0 (golden function of
    op-plugin's test_scatter_list.py; ops-nn index/scatter_list).
    """
    if reduce != "update":
        raise RuntimeError(f"npu_scatter_list: reduce supports 'update' only, but got '{reduce}'")
    if indices.dim() != 1:
        raise NoReferenceError("npu::npu_scatter_list", "indices with more than one dimension")
    for i, (target, start) in enumerate(zip(self, indices.tolist(), strict=True)):
        if mask is None or bool(mask[i]):
            target.narrow(axis, start, updates.size(axis)).copy_(updates[i])


@kernel("npu::npu_scatter_list")
def npu_scatter_list(
    self: Sequence[Tensor],
    indices: Tensor,
    updates: Tensor,
    mask: Tensor | None = None,
    reduce: str = "update",
    axis: int = -2,
) -> list[Tensor]:
    copies = [tensor.clone() for tensor in self]
    npu_scatter_list_(copies, indices, updates, mask, reduce, axis)
    return copies


@kernel("npu::npu_masked_fill_range")
def npu_masked_fill_range(self: Tensor, start: Tensor, end: Tensor, value: Tensor, axis: int = -1) -> Tensor:
    """A copy where, for every i and j, value[i] stands from start[i, j] to end[i, j] along `axis`: in row j of the
    first dimension if `axis` is the last one of two or three, otherwise in all rows (golden function of op-plugin's
    test_masked_fill_range.py).
    """
    _check_ranges(self, start, end, value, axis)
    axis %= self.dim()
    by_row = self.dim() > 1 and axis == self.dim() - 1
    result = self.clone()
    for i in range(start.size(0)):
        for j in range(start.size(1)):
            low, high = int(start[i, j]), int(end[i, j])
            target = result[j].narrow(axis - 1, low, high - low) if by_row else result.narrow(axis, low, high - low)
            target.fill_(value[i])
    return result


def _check_ranges(self: Tensor, start: Tensor, end: Tensor, value: Tensor, axis: int) -> None:
    """The checks of MaskedFillRangeKernelNpu.cpp."""
    if not -self.dim() <= axis < self.dim():
        raise RuntimeError(f"axis overfloaw the range, expected in range [{-self.dim()} {self.dim() - 1}] ")
    if start.dim() != 2 or start.shape != end.shape:
        raise RuntimeError("Expected noempty 2D start tensor and start' sizes() should be equal end's sizes() ")
    if start.size(0) != value.size(0):
        raise RuntimeError("Expected value.length equal start loop num ")
    if self.dtype != value.dtype:
        raise RuntimeError(
            f"value dtype should be equal self dtype !, but value dtype is {value.dtype} and self dtype is {self.dtype}"
        )
    if self.dim() > 3:
        raise NoReferenceError("npu::npu_masked_fill_range", "more than three dimensions")


@kernel("npu::npu_sim_exponential_", lend=False)
def npu_sim_exponential_(self: Tensor, lambd: float = 1, *, generator: torch.Generator | None = None) -> Tensor:
    """Fill with draws of the exponential distribution, as Tensor.exponential_ (torch_npu-npu_sim_exponential_.md); not
    the device's own draws.
    """
    return self.exponential_(lambd, generator=generator)
