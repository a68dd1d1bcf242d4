"""Attention for evaluation: npu_prompt_flash_attention, npu_incre_flash_attention, npu_fused_infer_attention_score.

Source: Ascend/op-plugin docs/zh/custom_APIs/torch_npu, the page of each operator. Quantised operands, paged caches,
left padding, shared prefixes and pse_shift (whose place in the formula no page tells) have no reference.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from npuport.sim.ops import attention_masks as masks
from npuport.sim.ops import attention_maths as maths
from npuport.sim.ops.attention_call import join_heads, split_heads
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError, refuse_uses

# input_layout -> layout of query, key, value; layout of the output
_LAYOUTS = {
    **{name: (name, name) for name in ("BSH", "BSND", "BNSD", "TND", "NTD")},
    "BNSD_BSND": ("BNSD", "BSND"),
    "BSND_BNSD": ("BSND", "BNSD"),
    "BSH_BNSD": ("BSH", "BNSD"),
    "TND_NTD": ("TND", "NTD"),
    "NTD_TND": ("NTD", "TND"),
}
_MODES = (masks.MODE_DEFAULT, masks.MODE_ALL, masks.MODE_LEFT_UP, masks.MODE_RIGHT_DOWN, masks.MODE_BAND)


@dataclass(frozen=True)
class _Inference:
    """The arguments that the three operators share; lengths as they were given."""

    heads: int
    key_heads: int
    scale: float
    layout: str
    mask: Tensor | None = None
    query_lengths: Sequence[int] | None = None
    key_lengths: Sequence[int] | None = None
    sparsity: masks.Sparsity = field(default_factory=masks.Sparsity)
    query_rope: Tensor | None = None
    key_rope: Tensor | None = None


def _split(tensor: Tensor, layout: str, heads: int) -> Tensor:
    return tensor[None] if layout == "NTD" else split_heads(tensor, layout, heads)


def _join(tensor: Tensor, layout: str) -> Tensor:
    return tensor[0].contiguous() if layout == "NTD" else join_heads(tensor, layout)


def _attend(query: Tensor, key: Tensor, value: Tensor, call: _Inference) -> tuple[Tensor, Tensor]:
    """(output in the output layout, log-sum-exp [B, N, S], 0 for rows that take no part)."""
    if call.layout not in _LAYOUTS:
        raise NoReferenceError("npu::npu_fused_infer_attention_score", f"input_layout {call.layout!r}")
    if call.sparsity.mode not in _MODES:
        raise RuntimeError(f"sparse_mode {call.sparsity.mode} is not supported, only 0 to 4")
    given, wanted = _LAYOUTS[call.layout]
    key_heads = call.key_heads or call.heads
    q, k, v = _split(query, given, call.heads), _split(key, given, key_heads), _split(value, given, key_heads)
    if q.size(1) != call.heads or k.size(1) != key_heads or call.heads % key_heads:
        raise RuntimeError(
            f"num_heads {call.heads} and num_key_value_heads {key_heads} do not fit {q.size(1)} and {k.size(1)} heads"
        )
    if call.query_rope is not None and call.key_rope is not None:
        q = torch.cat([q, _split(call.query_rope, given, call.heads)], dim=-1)
        k = torch.cat([k, _split(call.key_rope, given, key_heads)], dim=-1)
    output = q.new_zeros(*q.shape[:3], v.size(-1))
    lse = torch.zeros(q.shape[:3])
    for batch, rows, columns in _pieces(given, q, k, call):
        one = slice(batch, batch + 1)
        found = maths.attend(
            q[one, :, rows],
            k[one, :, columns],
            v[one, :, columns],
            maths.Options(call.scale),
            hidden=_hidden(call, batch, rows.stop - rows.start, columns.stop - columns.start),
        )
        output[one, :, rows] = found.output
        lse[one, :, rows] = found.row_max + found.row_sum.log()
    return _join(output, wanted), lse


def _pieces(layout: str, q: Tensor, k: Tensor, call: _Inference) -> list[tuple[int, slice, slice]]:
    """(batch, queries, keys) of what is attended together."""
    if layout in ("TND", "NTD"):
        if call.query_lengths is None or call.key_lengths is None:
            raise RuntimeError(f"input_layout {call.layout} needs the actual lengths of queries and keys")
        rows, columns = ([0, *lengths] for lengths in (call.query_lengths, call.key_lengths))
        bounds = zip(itertools.pairwise(rows), itertools.pairwise(columns), strict=True)
        return [(0, slice(*r), slice(*c)) for r, c in bounds]
    queries = _per_batch(call.query_lengths, q)
    keys = _per_batch(call.key_lengths, k)
    return [(b, slice(0, queries[b]), slice(0, keys[b])) for b in range(q.size(0))]


def _per_batch(lengths: Sequence[int] | None, tensor: Tensor) -> list[int]:
    if lengths is None:
        return [tensor.size(2)] * tensor.size(0)
    return list(lengths) * tensor.size(0) if len(lengths) == 1 else list(lengths)


def _hidden(call: _Inference, batch: int, queries: int, keys: int) -> Tensor | None:
    """What is hidden in one piece. A full mask counts only between pre_tokens and next_tokens from the diagonal."""
    mask = call.mask
    if mask is None or call.sparsity.mode not in (masks.MODE_DEFAULT, masks.MODE_ALL):
        return masks.hidden_positions(mask, queries, keys, call.sparsity)
    if queries == 1 and mask.dim() == 2 and mask.size(0) != 1:
        mask = mask[:, None, None]  # [B, Skv]
    elif mask.dim() < 4:
        mask = mask.view(-1, 1, *mask.shape[-2:])
    hidden = mask[batch if mask.size(0) > 1 else 0, None, ..., :queries, :keys].bool()
    if call.sparsity.mode == masks.MODE_DEFAULT and queries > 1:
        ahead = torch.arange(keys)[None, :] - torch.arange(queries)[:, None]
        hidden = hidden | (ahead > call.sparsity.next_tokens) | (ahead < -call.sparsity.pre_tokens)
    return hidden


@kernel("npu::npu_prompt_flash_attention")
def npu_prompt_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    atten_mask: Tensor | None = None,
    actual_seq_lengths: Sequence[int] | None = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    actual_seq_lengths_kv: Sequence[int] | None = None,
    sparse_mode: int = 0,
    **unsupported: Any,
) -> Tensor:
    """softmax(scale·q·kᵀ + mask)·v, in the shape of the query."""
    refuse_uses("npu::npu_prompt_flash_attention", unsupported)
    sparsity = masks.Sparsity(sparse_mode, pre_tokens, next_tokens)
    call = _Inference(
        num_heads, num_key_value_heads, scale_value, input_layout, atten_mask, actual_seq_lengths,
        actual_seq_lengths_kv, sparsity,
    )  # fmt: skip
    return _attend(query, key, value, call)[0]


@kernel("npu::npu_incre_flash_attention")
def npu_incre_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    atten_mask: Tensor | None = None,
    actual_seq_lengths: Sequence[int] | None = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    inner_precise: int = 1,
    **unsupported: Any,
) -> Tensor:
    """Attention of one query per sequence; `actual_seq_lengths` are those of the keys."""
    refuse_uses("npu::npu_incre_flash_attention", unsupported)
    call = _Inference(
        num_heads, num_key_value_heads, scale_value, input_layout, atten_mask, key_lengths=actual_seq_lengths
    )
    return _attend(query, key, value, call)[0]


_SHARED = {"inner_precise"}


def _fused_infer(query: Tensor, key: Tensor, value: Tensor, call: _Inference, with_lse: bool) -> tuple[Tensor, Tensor]:
    output, lse = _attend(query, key, value, call)
    if not with_lse:
        return output, torch.zeros(1)
    if _LAYOUTS[call.layout][0] in ("TND", "NTD"):
        return output, lse[0].T.unsqueeze(-1).contiguous()
    return output, lse.unsqueeze(-1)


@kernel("npu::npu_fused_infer_attention_score")
def npu_fused_infer_attention_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    atten_mask: Tensor | None = None,
    actual_seq_lengths: Sequence[int] | None = None,
    actual_seq_lengths_kv: Sequence[int] | None = None,
    query_rope: Tensor | None = None,
    key_rope: Tensor | None = None,
    num_heads: int = 1,
    scale: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    softmax_lse_flag: bool = False,
    **unsupported: Any,
) -> tuple[Tensor, Tensor]:
    """(output, log-sum-exp [B, N, S, 1] or [T, N, 1]; [0] without softmax_lse_flag)."""
    refuse_uses("npu::npu_fused_infer_attention_score", unsupported, _SHARED)
    sparsity = masks.Sparsity(sparse_mode, pre_tokens, next_tokens)
    call = _Inference(
        num_heads, num_key_value_heads, scale, input_layout, atten_mask, actual_seq_lengths, actual_seq_lengths_kv,
        sparsity, query_rope, key_rope,
    )  # fmt: skip
    return _fused_infer(query, key, value, call, softmax_lse_flag)


@kernel("npu::npu_fused_infer_attention_score_v2")
def npu_fused_infer_attention_score_v2(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    query_rope: Tensor | None = None,
    key_rope: Tensor | None = None,
    atten_mask: Tensor | None = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    num_query_heads: int = 1,
    num_key_value_heads: int = 0,
    softmax_scale: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
    return_softmax_lse: bool = False,
    **unsupported: Any,
) -> tuple[Tensor, Tensor]:
    """As version 1 under other names."""
    refuse_uses("npu::npu_fused_infer_attention_score_v2", unsupported, _SHARED)
    sparsity = masks.Sparsity(sparse_mode, pre_tokens, next_tokens)
    call = _Inference(
        num_query_heads, num_key_value_heads, softmax_scale, input_layout, atten_mask, actual_seq_qlen,
        actual_seq_kvlen, sparsity, query_rope, key_rope,
    )  # fmt: skip
    return _fused_infer(query, key, value, call, return_softmax_lse)
