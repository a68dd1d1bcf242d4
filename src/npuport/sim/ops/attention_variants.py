"""Attention with another shape: over blocks of keys, and over pairs (Floyd).

Source: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_block_sparse_attention.md and
torch_npu-npu_fused_floyd_attention.md, the golden functions of test_npu_block_sparse_attention.py and
test_npu_fused_floyd_attention.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from npuport.sim.ops import attention_maths as maths
from npuport.sim.ops.attention_call import join_heads, split_heads
from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError

_LANES = 8


class _Blocks:
    """One call of block-sparse attention, cut into (batch, queries, keys); lengths are those of each batch."""

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor,
        block_shape: Sequence[int] | None,
        layouts: tuple[str, str],
        lengths: tuple[Sequence[int] | None, Sequence[int] | None],
        scale: float,
    ) -> None:
        operator = "npu::npu_block_sparse_attention"
        self.layout = layouts[0]
        if self.layout not in ("TND", "BNSD") or layouts[1] != self.layout:
            raise RuntimeError(f"npu_block_sparse_attention: layouts {layouts} must both be TND or both BNSD")
        self.query, self.key, self.value = (split_heads(t, self.layout, 1) for t in (query, key, value))
        if self.key.size(1) not in (1, self.query.size(1)):
            raise NoReferenceError(
                operator, "several key heads for groups of query heads, whose order is not documented"
            )
        self.mask, self.block, self.options = mask.bool(), list(block_shape or ()), maths.Options(scale)
        if len(self.block) < 2:
            raise RuntimeError(f"npu_block_sparse_attention: block_shape needs two numbers, got {self.block}")
        self.lengths = lengths

    def pieces(self) -> list[tuple[int, slice, slice]]:
        queries, keys = self.lengths
        if self.layout == "BNSD":
            batch, full = self.query.size(0), (self.query.size(2), self.key.size(2))
            rows, columns = (list(given or [size] * batch) for given, size in zip(self.lengths, full, strict=True))
            return [(b, slice(0, rows[b]), slice(0, columns[b])) for b in range(batch)]
        if queries is None or keys is None:
            raise RuntimeError("npu_block_sparse_attention: layout TND needs the actual lengths of queries and keys")
        found, row, column = [], 0, 0
        for q, k in zip(queries, keys, strict=True):
            found.append((0, slice(row, row + q), slice(column, column + k)))
            row, column = row + q, column + k
        return found

    def operands(self, index: int, batch: int, rows: slice, columns: slice) -> dict[str, Any]:
        one = slice(batch, batch + 1)
        row = torch.arange(rows.stop - rows.start) // self.block[0]
        column = torch.arange(columns.stop - columns.start) // self.block[1]
        return {
            "query": self.query[one, :, rows],
            "key": self.key[one, :, columns],
            "value": self.value[one, :, columns],
            "options": self.options,
            "hidden": ~self.mask[index][:, row[:, None], column[None, :]][None],
        }


@kernel("npu::npu_block_sparse_attention")
def npu_block_sparse_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    block_sparse_mask: Tensor,
    block_shape: Sequence[int],
    *,
    q_input_layout: str = "TND",
    kv_input_layout: str = "TND",
    num_key_value_heads: int = 1,
    scale_value: float = 0.0,
    inner_precise: int = 1,
    actual_seq_lengths: Sequence[int] | None = None,
    actual_seq_lengths_kv: Sequence[int] | None = None,
    softmax_lse_flag: int | None = 0,
) -> tuple[Tensor, Tensor]:
    """(output, log-sum-exp [B, N, S, 1] or [T, N, 1], NaN without softmax_lse_flag, when the device does not write it);
    block_sparse_mask [B, N, blocks of queries, blocks of keys] is 1 where a block takes part.
    """
    call = _Blocks(
        query, key, value, block_sparse_mask, block_shape, (q_input_layout, kv_input_layout),
        (actual_seq_lengths, actual_seq_lengths_kv), scale_value,
    )  # fmt: skip
    output = call.query.new_zeros(*call.query.shape[:3], call.value.size(-1))
    lse = wide(output).new_zeros(*call.query.shape[:3], 1)
    for index, (batch, rows, columns) in enumerate(call.pieces()):
        found = maths.attend(**call.operands(index, batch, rows, columns))
        output[batch, :, rows] = found.output[0]
        lse[batch, :, rows, 0] = (found.row_max + found.row_sum.log())[0]
    shown = lse if softmax_lse_flag else torch.full_like(lse, float("nan"))
    return join_heads(output, call.layout), join_heads(shown, call.layout)


@kernel("npu::npu_block_sparse_attention_backward")
def npu_block_sparse_attention_backward(
    d_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_out: Tensor,
    softmax_lse: Tensor,
    block_sparse_mask: Tensor,
    block_shape: Sequence[int] | None,
    actual_seq_lengths: Sequence[int] | None,
    actual_seq_lengths_kv: Sequence[int] | None,
    q_input_layout: str,
    kv_input_layout: str,
    num_key_value_heads: int,
    scale_value: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """(dq, dk, dv)."""
    if softmax_lse.numel() and torch.isnan(softmax_lse).all():
        raise RuntimeError(
            "npu_block_sparse_attention: a gradient needs the log-sum-exp; call it with softmax_lse_flag=1"
        )
    call = _Blocks(
        query, key, value, block_sparse_mask, block_shape, (q_input_layout, kv_input_layout),
        (actual_seq_lengths, actual_seq_lengths_kv), scale_value,
    )  # fmt: skip
    grad = split_heads(d_out, call.layout, 1)
    grads = [torch.zeros_like(t) for t in (call.query, call.key, call.value)]
    for index, (batch, rows, columns) in enumerate(call.pieces()):
        found = maths.differentiate(grad[batch : batch + 1, :, rows], **call.operands(index, batch, rows, columns))
        for total, part, where in zip(
            grads, (found.query, found.key, found.value), (rows, columns, columns), strict=True
        ):
            total[batch, :, where] = part[0]
    dq, dk, dv = (join_heads(g, call.layout) for g in grads)
    return dq, dk, dv


def _floyd(operands: Sequence[Tensor], hidden: Tensor | None, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """(output, row maximum, row sum) for query [B, H, I, K, D], *_ij [B, H, I, J, D], *_jk [B, H, J, K, D]."""
    query, key_ij, value_ij, key_jk, value_jk = operands
    scores = torch.einsum("bhikc,bhijc->bhikj", query, key_ij) + torch.einsum("bhikc,bhjkc->bhikj", query, key_jk)
    scores = scores * scale
    if hidden is not None:
        scores = scores.masked_fill(hidden.bool(), float("-inf"))
    row_max = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp(scores - row_max)
    row_sum = weights.sum(dim=-1, keepdim=True)
    weights = weights / row_sum
    output = torch.einsum("bhikj,bhijc->bhikc", weights, value_ij)
    return output + torch.einsum("bhikj,bhjkc->bhikc", weights, value_jk), row_max, row_sum


@kernel("npu::npu_fused_floyd_attention")
def npu_fused_floyd_attention(
    query_ik: Tensor,
    key_ij: Tensor,
    value_ij: Tensor,
    key_jk: Tensor,
    value_jk: Tensor,
    *,
    atten_mask: Tensor | None = None,
    scale_value: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """(row maximum and row sum [B, H, I, K, 8] float32, output): the weight of j for the pair (i, k) comes from both
    (i, j) and (j, k), and so does its value. `atten_mask` [B, 1, I, 1, J] is 1 where j is hidden.
    """
    operands = [wide(t) for t in (query_ik, key_ij, value_ij, key_jk, value_jk)]
    output, row_max, row_sum = _floyd(operands, atten_mask, scale_value)
    statistics = (t.expand(*t.shape[:-1], _LANES).contiguous() for t in (row_max, row_sum))
    return *statistics, output.to(query_ik.dtype)


@kernel("npu::npu_fused_floyd_attention_backward")
def npu_fused_floyd_attention_backward(
    grad_output: Tensor,
    query_ik: Tensor,
    key_ij: Tensor,
    value_ij: Tensor,
    key_jk: Tensor,
    value_jk: Tensor,
    attention_out: Tensor,
    softmax_max: Tensor,
    softmax_sum: Tensor,
    *,
    atten_mask: Tensor | None = None,
    scale_value: float = 1.0,
) -> tuple[Tensor, ...]:
    """The gradients of the five operands."""
    operands = (query_ik, key_ij, value_ij, key_jk, value_jk)
    found = vector_jacobian(
        lambda *t: _floyd(t, atten_mask, scale_value)[0], [wide(t) for t in operands], (wide(grad_output),)
    )
    return tuple(g.to(t.dtype) for g, t in zip(found, operands, strict=True) if g is not None)
