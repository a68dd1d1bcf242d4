"""Fused attention operators: npu_fusion_attention (v1, v2, v3), their gradients, behind the dispatcher.

torch_npu decides when `aten::scaled_dot_product_attention` comes here. Signatures: torch_npu 2.13.0. The
dropout mask is drawn as the CPU run of `scaled_dot_product_attention` draws it; the returned seed brings it back for
the backward operator. A seed without a dropout_mask is ignored, as op-plugin's code ignores it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from npuport.sim.ops import attention_maths as maths
from npuport.sim.ops.attention_call import AttentionCall, join_heads, split_heads
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import StaysOnHost, kernel, lent
from npuport.sim.ops.unavailable import NoReferenceError

# softmax_max and softmax_sum repeat each number (SOFTMAXMAX_LAST_DIMSHAPE of FlashAttentionKernelNpuOpApi.cpp).
_LANES = 8


def _forward(call: AttentionCall) -> tuple[Tensor, Tensor, Tensor, Tensor, int, int]:
    """(output, softmax_max, softmax_sum, the empty softmax_out, seed, offset)."""
    query = call.query
    output = query.new_zeros(*query.shape[:3], call.value.size(-1))
    row_max = wide(query).new_zeros(query.shape[:3])
    row_sum = torch.zeros_like(row_max)
    survivors, seed, offset = call.draw()
    for piece, kept in zip(call.pieces, call.cut(survivors), strict=True):
        found = maths.attend(**call.operands(piece), survivors=kept)
        rows = piece.rows
        output[:, :, rows], row_max[:, :, rows], row_sum[:, :, rows] = found.output, found.row_max, found.row_sum
    statistics = _store_statistics(call, row_max), _store_statistics(call, row_sum)
    return join_heads(output, call.layout), *statistics, query.new_empty(0), seed, offset


def _store_statistics(call: AttentionCall, values: Tensor) -> Tensor:
    """[B, N, S] as the operator returns it: [B, N, S, 8], and for TND [T, N, 8].

    Unless softmax_layout is "TND", the numbers of a TND call lie in NTD order within each sequence
    (`unflatten_softmax` of Ascend/MindSpeed mindspeed/core/context_parallel/utils.py).
    """
    lanes = values.unsqueeze(-1).repeat(1, 1, 1, _LANES)
    if call.layout != "TND":
        return lanes
    by_head = lanes[0]
    if call.arguments.get("softmax_layout") == "TND":
        return by_head.transpose(0, 1).contiguous()
    rows = torch.cat([by_head[:, piece.rows].reshape(-1, _LANES) for piece in call.pieces])
    stored = values.new_zeros(by_head.size(1) * by_head.size(0), _LANES)
    stored[: rows.size(0)] = rows
    return stored.view(by_head.size(1), by_head.size(0), _LANES)


def _load_statistics(call: AttentionCall, stored: Tensor) -> Tensor:
    """Undo `_store_statistics`: [B, N, S]."""
    first = stored[..., 0]
    if call.layout != "TND":
        return first
    if call.arguments.get("softmax_layout") == "TND":
        return first.transpose(0, 1)[None]
    heads = call.query.size(1)
    values = first.new_zeros(call.query.shape[:3])
    flat, start = first.flatten(), 0
    for piece in call.pieces:
        length = heads * piece.size[2]
        values[0, :, piece.rows] = flat[start : start + length].view(heads, -1)
        start += length
    return values


def _saved(call: AttentionCall) -> maths.Attention | None:
    """What the caller of a backward operator says the forward pass found; None when it does not say."""
    given = [call.arguments.get(name) for name in ("attention_in", "softmax_max", "softmax_sum")]
    if any(tensor is None or not tensor.numel() for tensor in given):
        return None
    output, row_max, row_sum = given
    return maths.Attention(
        split_heads(output, call.layout, call.query.size(1)),
        _load_statistics(call, row_max),
        _load_statistics(call, row_sum),
    )


def _backward(call: AttentionCall, grad: Tensor, seed: int, offset: int) -> tuple[Tensor | None, ...]:
    """(dq, dk, dv, dpse, dq_rope, dk_rope, dsink) in the layouts of the call."""
    survivors, saved = call.draw_again(seed, offset), _saved(call)
    output_grad = split_heads(grad, call.layout, call.query.size(1))
    query_grad, key_grad = torch.zeros_like(call.query), torch.zeros_like(call.key)
    value_grad = torch.zeros_like(call.value)
    pse_grad: Tensor | None = None
    sink_grad: Tensor | None = None
    for piece, kept in zip(call.pieces, call.cut(survivors), strict=True):
        rows, columns = piece.rows, piece.columns
        forward = saved and maths.Attention(*(t[:, :, rows] for t in (saved.output, saved.row_max, saved.row_sum)))
        found = maths.differentiate(output_grad[:, :, rows], **call.operands(piece), survivors=kept, forward=forward)
        query_grad[:, :, rows], key_grad[:, :, columns], value_grad[:, :, columns] = found.query, found.key, found.value
        pse_grad = found.bias
        if found.sink is not None:
            sink_grad = found.sink if sink_grad is None else sink_grad + found.sink
    parts = [
        grad[..., part] for grad in (query_grad, key_grad) for part in (slice(call.width), slice(call.width, None))
    ]
    dq, dq_rope, dk, dk_rope = (join_heads(part, call.layout) for part in parts)
    roped = call.arguments.get("query_rope") is not None
    ropes = (dq_rope, dk_rope) if roped else (None, None)
    return dq, dk, join_heads(value_grad, call.layout), _pse_gradient(call, pse_grad), *ropes, sink_grad


def _pse_gradient(call: AttentionCall, found: Tensor | None) -> Tensor | None:
    """CANN documents the gradient of pse as not used at present (aclnnFlashAttentionScoreGradV2): who asks for it is
    told.
    """
    pse = call.arguments.get("pse")
    if pse is None or found is None:
        return None
    if found.shape == pse.shape:
        if lent(pse).requires_grad:
            warnings.warn(
                "npu_fusion_attention: pse requires a gradient, which CANN documents as not computed on the device; "
                "the simulated NPU returns the mathematical one. Next step: add a bias that is trained outside of the "
                "fused operator.",
                stacklevel=2,
            )
        return found
    if lent(pse).requires_grad:
        raise NoReferenceError("npu::npu_fusion_attention_grad", f"the gradient of pse of shape {list(pse.shape)}")
    return None


_POSITIONAL = (
    "pse",
    "padding_mask",
    "atten_mask",
    "scale",
    "keep_prob",
    "pre_tokens",
    "next_tokens",
    "inner_precise",
    "prefix",
    "actual_seq_qlen",
    "actual_seq_kvlen",
    "sparse_mode",
    "gen_mask_parallel",
    "sync",
    "softmax_layout",
    "sink",
    "dropout_mask",
    "seed",
    "offset",
)
_RENAMED = {"pre_tockens": "pre_tokens", "next_tockens": "next_tokens", "scale_value": "scale"}
_DEFAULTS = {"scale": 1.0, "keep_prob": 1.0, "sparse_mode": 0, "pre_tokens": 2147483647, "next_tokens": 2147483647}


def _call(
    query: Tensor, key: Tensor, value: Tensor, heads: int, layout: str, positional: Sequence[Any], named: dict[str, Any]
) -> AttentionCall:
    """The call in one spelling: versions 1 and 3 take positional arguments and say "tockens", version 2 and the
    gradients do not.
    """
    given = dict(zip(_POSITIONAL, positional, strict=False)) | {_RENAMED.get(n, n): v for n, v in named.items()}
    return AttentionCall(query, key, value, heads, layout, _DEFAULTS | given)


def _as_int(number: Any) -> int:
    return 0 if number is None else int(number)


@kernel("npu::npu_fusion_attention", "npu::npu_fusion_attention_v2")
def npu_fusion_attention(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str, *positional: Any, **named: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]:
    """(output, softmax_max, softmax_sum, reserved, seed, offset, numels); see `attention_maths` for the formula."""
    call = _call(query, key, value, head_num, input_layout, positional, named)
    return *_forward(call), call.count


@kernel("npu::npu_fusion_attention_v3", mixed=True)
def npu_fusion_attention_v3(
    query: Tensor, key: Tensor, value: Tensor, head_num: int, input_layout: str, *positional: Any, **named: Any
) -> tuple[Any, ...]:
    """Version 3 takes actual sequence lengths as CPU tensors and returns seed and offset as CPU tensors."""
    *tensors, seed, offset = _forward(_call(query, key, value, head_num, input_layout, positional, named))
    return *tensors, *(StaysOnHost(torch.tensor([number])) for number in (seed, offset))


def _gradients(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, heads: int, layout: str, named: dict[str, Any]
) -> tuple[Tensor | None, ...]:
    seed, offset = (_as_int(named.get(name)) for name in ("seed", "offset"))
    return _backward(_call(query, key, value, heads, layout, (), named), dy, seed, offset)


@kernel("npu::npu_fusion_attention_grad")
def npu_fusion_attention_grad(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, head_num: int, input_layout: str, **named: Any
) -> tuple[Tensor | None, ...]:
    """(dq, dk, dv, dpse, dsink)."""
    dq, dk, dv, dpse, _, _, dsink = _gradients(query, key, value, dy, head_num, input_layout, named)
    return dq, dk, dv, dpse, dsink


@kernel("npu::npu_fusion_attention_grad_v3", mixed=True)
def npu_fusion_attention_grad_v3(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, head_num: int, input_layout: str, **named: Any
) -> tuple[Tensor | None, ...]:
    """(dq, dk, dv, dpse, dsink)."""
    return npu_fusion_attention_grad(query, key, value, dy, head_num, input_layout, **named)


@kernel("npu::npu_fusion_attention_grad_v2")
def npu_fusion_attention_grad_v2(
    query: Tensor, key: Tensor, value: Tensor, dy: Tensor, head_num: int, input_layout: str, **named: Any
) -> tuple[Tensor | None, ...]:
    """(dq, dk, dv, dpse, dq_rope, dk_rope, dsink), the order of derivatives.yaml."""
    return _gradients(query, key, value, dy, head_num, input_layout, named)
