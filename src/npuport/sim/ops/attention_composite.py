"""The older fused operators around attention: whole multi-head attention, softmax with a mask and dropout.

Sources: Ascend/op-plugin docs/zh/custom_APIs/torch_npu (npu_multi_head_attention, npu_dropout_with_add_softmax), the
unfused equivalents in Ascend/pytorch test/custom_ops (test_npu_multi_head_attention.py,
test_npu_dropout_with_add_softmax.py), op_plugin/ops/aclops/MultiHeadAttentionKernelNpu.cpp and
DropoutWithAddSoftmaxKernelNpu.cpp, CANN's masked_softmax_with_rel_pos_bias (hicann/ops-nn norm/).
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from npuport.sim.ops.dropout import keep_mask, pack_bits, unpack_bits
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel, lent

_ALIGNED = 16


@kernel("npu::npu_masked_softmax_with_rel_pos_bias")
def npu_masked_softmax_with_rel_pos_bias(
    x: Tensor,
    atten_mask: Tensor | None,
    relative_pos_bias: Tensor,
    scale_value: float = 1.0,
    inner_precision_mode: int = 0,
) -> Tensor:
    """softmax(scale_value·x + atten_mask + relative_pos_bias) along the last dimension."""
    scores = wide(x) * scale_value + wide(relative_pos_bias)
    if atten_mask is not None:
        scores = scores + wide(atten_mask)
    return torch.softmax(scores, dim=-1).to(x.dtype)


@kernel("npu::npu_dropout_with_add_softmax")
def npu_dropout_with_add_softmax(
    input: Tensor, x1: Tensor, alpha: float, prob: float, dim: int
) -> tuple[Tensor, Tensor, Tensor]:
    """(mask with one byte per element, softmax(x1 + alpha·input), the same with dropout of probability `prob`)."""
    if lent(x1).requires_grad:
        warnings.warn(
            "npu_dropout_with_add_softmax: op-plugin returns the incoming gradient for x1, not its derivative. "
            "Next step: write the addition, softmax and dropout with PyTorch's operators if x1 is trained.",
            stacklevel=2,
        )
    softmax = torch.softmax(wide(x1) + wide(input) * alpha, dim=dim)
    mask = keep_mask(wide(input), prob)
    stored = torch.zeros(-(-input.numel() // 128) * 128, dtype=torch.uint8)
    stored[: input.numel()] = mask.flatten().to(torch.uint8)
    return stored, softmax.to(x1.dtype), (softmax * mask / (1 - prob)).to(input.dtype)


@kernel("npu::npu_dropout_with_add_softmax_backward")
def npu_dropout_with_add_softmax_backward(
    grad: Tensor, mask: Tensor, softmax_out: Tensor, alpha: float, prob: float, dim: int
) -> tuple[Tensor, Tensor]:
    """(the gradient of `input`; the incoming gradient, which op-plugin gives to x1)."""
    kept = mask[: grad.numel()].view(grad.shape)
    found = _softmax_gradient(wide(grad) * kept / (1 - prob), wide(softmax_out), dim) * alpha
    return found.to(grad.dtype), grad.clone()


def _softmax_gradient(grad: Tensor, softmax: Tensor, dim: int = -1) -> Tensor:
    return softmax * (grad - (grad * softmax).sum(dim=dim, keepdim=True))


@kernel("npu::npu_multi_head_attention")
def npu_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_weight: Tensor,
    key_weight: Tensor,
    value_weight: Tensor,
    attn_mask: Tensor,
    out_proj_weight: Tensor,
    query_bias: Tensor | None,
    key_bias: Tensor | None,
    value_bias: Tensor | None,
    out_proj_bias: Tensor | None,
    dropout_mask: Tensor | None,
    attn_head_num: int,
    attn_dim_per_head: int,
    src_len: int,
    tgt_len: int,
    dropout_prob: float,
    softmax_use_float: bool,
) -> tuple[Tensor, ...]:
    """(y, packed dropout mask, q·width^-½, k, v [B, N, S, width], softmax, softmax with dropout, context) for query
    [B·tgt_len, N·width] and key, value [B·src_len, N·width]; attn_mask is added to the scores. Each step is rounded
    to the dtype of the query, as in the unfused equivalent.
    """
    sizes = (tgt_len, src_len, attn_head_num, attn_dim_per_head)
    if any(size <= 0 or size % _ALIGNED for size in sizes):
        raise RuntimeError("tgt_len, src_len, attn_head_num, attn_dim_per_head should align to 16.")
    dtype, batch, width = query.dtype, query.size(0) // tgt_len, attn_dim_per_head

    def heads(x: Tensor, weight: Tensor, bias: Tensor | None, length: int, scale: float = 1.0) -> Tensor:
        projected = torch.nn.functional.linear(wide(x), wide(weight), None if bias is None else wide(bias)).to(dtype)
        return (projected * scale).view(batch, length, attn_head_num, width).transpose(1, 2).contiguous()

    q = heads(query, query_weight, query_bias, tgt_len, width**-0.5)
    k, v = (heads(x, w, b, src_len) for x, w, b in ((key, key_weight, key_bias), (value, value_weight, value_bias)))
    scores = (wide(q) @ wide(k).mT).to(dtype) + attn_mask
    softmax = torch.softmax(wide(scores), dim=-1)
    kept = torch.ones_like(softmax)
    if dropout_prob:
        kept = keep_mask(softmax, dropout_prob) if dropout_mask is None else unpack_bits(dropout_mask, softmax)
    packed = pack_bits(kept)
    dropped = (wide(softmax.to(dtype)) * kept / (1 - dropout_prob)).to(dtype)
    context = (wide(dropped) @ wide(v)).transpose(1, 2).reshape(batch * tgt_len, -1).to(dtype)
    bias = None if out_proj_bias is None else wide(out_proj_bias)
    y = torch.nn.functional.linear(wide(context), wide(out_proj_weight), bias).to(dtype)
    shown = softmax if softmax_use_float else softmax.to(dtype)
    return y, packed, q, k, v, shown, dropped, context


@kernel("npu::npu_multi_head_attention_backward")
def npu_multi_head_attention_backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_weight: Tensor,
    key_weight: Tensor,
    value_weight: Tensor,
    out_proj_weight: Tensor,
    query_bias: Tensor | None,
    key_bias: Tensor | None,
    value_bias: Tensor | None,
    out_proj_bias: Tensor | None,
    query_res: Tensor,
    key_res: Tensor,
    value_res: Tensor,
    attn_scores: Tensor,
    attn_res: Tensor,
    context: Tensor,
    y_grad: Tensor,
    dropout_mask: Tensor,
    attn_head_num: int,
    attn_dim_per_head: int,
    src_len: int,
    tgt_len: int,
    dropout_prob: float,
    softmax_use_float: bool,
) -> tuple[Tensor | None, ...]:
    """(weight gradients of q, k, v, out; gradients of query, key, value; bias gradients [1, N·width]); each step is
    rounded as in the forward.
    """
    dtype, grad, softmax = query.dtype, wide(y_grad), wide(attn_scores)
    batch = query.size(0) // tgt_len

    def product(left: Tensor, right: Tensor) -> Tensor:
        return wide((wide(left) @ wide(right)).to(dtype))

    of_context = product(grad, out_proj_weight).view(batch, tgt_len, attn_head_num, -1).transpose(1, 2)
    of_softmax = product(of_context, value_res.mT)
    if dropout_prob:
        of_softmax = of_softmax * unpack_bits(dropout_mask, softmax) / (1 - dropout_prob)
    of_scores = wide(_softmax_gradient(of_softmax, softmax).to(dtype))
    projected = (
        (product(of_scores, key_res) * attn_dim_per_head**-0.5, query, query_weight, query_bias),
        (product(of_scores.mT, query_res), key, key_weight, key_bias),
        (product(attn_res.mT, of_context), value, value_weight, value_bias),
    )
    weights, inputs, biases = [], [], []
    for upper, x, weight, bias in projected:
        rows = upper.transpose(1, 2).flatten(2).flatten(0, 1)
        weights.append((rows.T @ wide(x)).to(weight.dtype))
        inputs.append((rows @ wide(weight)).to(x.dtype))
        biases.append(None if bias is None else rows.sum(dim=0, keepdim=True).to(bias.dtype))
    weights.append((grad.T @ wide(context)).to(out_proj_weight.dtype))
    biases.append(None if out_proj_bias is None else grad.sum(dim=0, keepdim=True).to(out_proj_bias.dtype))
    return *weights, *inputs, *biases
