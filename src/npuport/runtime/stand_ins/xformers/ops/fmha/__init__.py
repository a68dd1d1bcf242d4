"""``xformers.ops.fmha``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from npuport.runtime.fused_attention import attend

from . import attn_bias
from .attn_bias import AttentionBias, BlockDiagonalMask, LowerTriangularMask

__all__ = ["AttentionBias", "BlockDiagonalMask", "LowerTriangularMask", "attn_bias", "memory_efficient_attention"]


def memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Any = None,
    p: float = 0.0,
    scale: float | None = None,
    *,
    op: Any = None,  # noqa: ARG001 - there is one implementation
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    """Attention of [batch, sequence, heads, size]; with 3 dimensions of one head, with 5 of groups of heads."""
    if query.dim() == 3:
        q, k, v = (each.unsqueeze(2) for each in (query, key, value))
        bias = attn_bias.unsqueeze(1) if isinstance(attn_bias, Tensor) and attn_bias.dim() == 3 else attn_bias
        return memory_efficient_attention(q, k, v, bias, p, scale, output_dtype=output_dtype).squeeze(2)
    if query.dim() == 5:
        q, k, v = (each.flatten(2, 3) for each in (query, key, value))
        found = memory_efficient_attention(q, k, v, attn_bias, p, scale, output_dtype=output_dtype)
        return found.unflatten(2, query.shape[2:4])
    if isinstance(attn_bias, BlockDiagonalMask):
        ends = attn_bias.q_seqinfo.seqstart_py[1:], attn_bias.k_seqinfo.seqstart_py[1:]
        q, k, v = (each.flatten(0, 1) for each in (query, key, value))
        out = attend(q, k, v, layout="TND", scale=scale, dropout=p, causal=attn_bias.causal, lengths=ends)
        out = out.unflatten(0, query.shape[:2])
    elif isinstance(attn_bias, AttentionBias):
        out = attend(
            query, key, value, layout="BSND", scale=scale, dropout=p, causal=attn_bias.causal, bias=attn_bias.bias
        )
    else:
        out = attend(query, key, value, layout="BSND", scale=scale, dropout=p, bias=_whole(attn_bias, query, key))
    return out if output_dtype is None else out.to(output_dtype)


def _whole(bias: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """A bias as the operator takes it: [batch, heads, queries, keys]."""
    if bias is None:
        return None
    batch, queries, heads, _ = query.shape
    return bias.expand(batch, heads, queries, key.shape[1])
