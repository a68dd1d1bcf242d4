"""Sparse COO tensors. torch_npu answers for them by itself, but for ``coalesce``, which it hands to CANN."""

from __future__ import annotations

import torch

from npuport.sim.ops.registration import kernel

SPARSE = "SparsePrivateUse1"


@kernel("aten::_coalesce", keys=(SPARSE,), lend=False)
def coalesce(tensor: torch.Tensor) -> torch.Tensor:
    """The same tensor with each index once, in order: values of one index are added (of bool: any of them).

    Source: torch.Tensor.coalesce.
    """
    indices, values = tensor._indices(), tensor._values()
    sizes = tensor.shape[: tensor.sparse_dim()]
    strides = torch.tensor([sizes[dim + 1 :].numel() for dim in range(len(sizes))], device=indices.device)
    distinct, place = torch.unique((indices * strides.unsqueeze(1)).sum(0), return_inverse=True)
    summable = values.to(torch.int32) if values.dtype == torch.bool else values
    summed = summable.new_zeros(distinct.numel(), *values.shape[1:]).index_add(0, place, summable)
    places = torch.stack(torch.unravel_index(distinct, sizes)) if sizes else indices[:, : distinct.numel()]
    return torch.sparse_coo_tensor(
        places, summed.to(values.dtype), tensor.shape, is_coalesced=True, check_invariants=False
    )
