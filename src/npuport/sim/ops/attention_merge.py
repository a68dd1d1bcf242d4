"""Attention over several parts of the keys, merged from the attention over each."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


@kernel("npu::npu_ring_attention_update")
def npu_ring_attention_update(
    prev_attn_out: Tensor,
    prev_softmax_max: Tensor,
    prev_softmax_sum: Tensor,
    cur_attn_out: Tensor,
    cur_softmax_max: Tensor,
    cur_softmax_sum: Tensor,
    *,
    actual_seq_qlen: Tensor | None = None,
    input_layout: str = "SBH",
    input_softmax_layout: str = "",
) -> tuple[Tensor, Tensor, Tensor]:
    """(output, row maximum, row sum) over two parts (golden function of op-plugin's test_npu_ring_attention_update.py).

    The statistics of TND lie by head within each sequence unless input_softmax_layout is "TND"
    (Ascend/MindSpeed docs/zh/ops/npu_ring_attention_update.md).
    """
    if input_layout not in ("SBH", "TND"):
        raise NoReferenceError("npu::npu_ring_attention_update", f"input_layout {input_layout!r}")
    row_max = torch.maximum(prev_softmax_max, cur_softmax_max)
    prev_sum = prev_softmax_sum * torch.exp(prev_softmax_max - row_max)
    cur_sum = cur_softmax_sum * torch.exp(cur_softmax_max - row_max)
    row_sum = prev_sum + cur_sum

    def share(part: Tensor) -> Tensor:
        factor = (part / row_sum)[..., :1]
        if input_layout == "SBH":
            return factor.permute(2, 0, 1, 3)
        return factor if input_softmax_layout == "TND" else _by_token(factor, actual_seq_qlen)

    def heads(attention: Tensor) -> Tensor:
        return wide(attention).unflatten(-1, (row_max.size(1), -1)) if input_layout == "SBH" else wide(attention)

    merged = heads(prev_attn_out) * share(prev_sum) + heads(cur_attn_out) * share(cur_sum)
    return merged.reshape(prev_attn_out.shape).to(prev_attn_out.dtype), row_max, row_sum


def _by_token(stored: Tensor, ends: Tensor | None) -> Tensor:
    """[T, N, 1] stored by head within each sequence, as [T, N, 1] by token."""
    if ends is None:
        raise RuntimeError("npu_ring_attention_update: input_layout TND needs actual_seq_qlen")
    numbers = ends.tolist()
    starts = numbers[:-1] if numbers[0] == 0 else [0, *numbers[:-1]]
    ends_only = numbers[1:] if numbers[0] == 0 else numbers
    count = stored.size(1)
    parts = stored.flatten().split([(end - start) * count for start, end in zip(starts, ends_only, strict=True)])
    return torch.cat([part.view(count, -1).T for part in parts]).unsqueeze(-1)


@kernel("npu::npu_attention_update")
def npu_attention_update(
    lse: Sequence[Tensor], local_out: Sequence[Tensor], update_type: int
) -> tuple[Tensor, Tensor | None]:
    """(Σᵢ outᵢ·exp(lseᵢ - lse), lse = log Σᵢ exp(lseᵢ)) for lse [N] and outputs [N, H]; the second only for update_type
    1 (torch_npu-npu_attention_update.md).
    """
    logs = torch.stack(list(lse)).float()
    total = torch.logsumexp(logs, dim=0)
    merged = (torch.stack([wide(out) for out in local_out]) * (logs - total).exp().unsqueeze(-1)).sum(dim=0)
    return merged.to(local_out[0].dtype), total if update_type == 1 else None
