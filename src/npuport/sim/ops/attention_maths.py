"""What fused attention computes, in plain torch: dropout(softmax(mask(scale·(q·kᵀ + bias))))·v, and its gradients.

Source: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_fusion_attention.md (formula, layouts, sink). The
page adds the position bias before the scale in its formula and after it in one example; the formula is followed
(pse_type 1 of CANN's aclnnFlashAttentionScoreV2 says the same). Everything is computed in float32 and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from npuport.sim.ops.precision import wide


@dataclass(frozen=True)
class Options:
    """What does not depend on the tensors. `bias_before_scale` is pse_type 1."""

    scale: float = 1.0
    keep_prob: float = 1.0
    bias_before_scale: bool = True


@dataclass(frozen=True)
class Attention:
    """Forward result: output [B, N, Sq, Dv] in the dtype of the query; row maximum and row sum of the softmax,
    float32 [B, N, Sq].
    """

    output: Tensor
    row_max: Tensor
    row_sum: Tensor


@dataclass(frozen=True)
class Gradients:
    """Of each tensor, in its dtype and shape; `bias` in the shape of the bias that was given."""

    query: Tensor
    key: Tensor
    value: Tensor
    bias: Tensor | None
    sink: Tensor | None


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: Options,
    hidden: Tensor | None = None,
    bias: Tensor | None = None,
    sink: Tensor | None = None,
    survivors: Tensor | None = None,
) -> Attention:
    """Attention of query [B, N, Sq, D] over key [B, Nkv, Skv, D] and value [B, Nkv, Skv, Dv], N a multiple of Nkv.

    `survivors` [B, N, Sq, Skv] is 1 where dropout keeps a probability; `sink` [N] is one extra logit per head. A row
    that hides every key gives 0.
    """
    scores = _scores(query, key, options, hidden, bias)
    row_max, row_sum = _statistics(scores, sink)
    probabilities = _probabilities(scores, row_max, row_sum)
    if survivors is not None:
        probabilities = probabilities * (survivors.to(probabilities.dtype) / options.keep_prob)
    output = probabilities @ _per_query_head(value, query)
    return Attention(output.to(query.dtype), row_max, row_sum)


def differentiate(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: Options,
    hidden: Tensor | None = None,
    bias: Tensor | None = None,
    sink: Tensor | None = None,
    survivors: Tensor | None = None,
    forward: Attention | None = None,
) -> Gradients:
    """Gradients of `attend`'s output for all its tensors.

    `forward` is what the forward pass found. It need not come from these keys alone: attention that is split over
    devices passes the output and the statistics over all keys, and gets this part's share of the gradients.
    """
    grad = wide(grad)
    scores = _scores(query, key, options, hidden, bias)
    if forward is None:
        forward = attend(query, key, value, options, hidden, bias, sink, survivors)
    probabilities = _probabilities(scores, forward.row_max, forward.row_sum)
    keep = 1.0 if survivors is None else survivors.to(grad.dtype) / options.keep_prob
    value_grad = (probabilities * keep).mT @ grad
    reached = (grad @ _per_query_head(value, query).mT) * keep
    inner = (grad * wide(forward.output)).sum(dim=-1, keepdim=True)
    score_grad = probabilities * (reached - inner)
    bias_grad = None
    if bias is not None:
        factor = options.scale if options.bias_before_scale else 1.0
        bias_grad = (score_grad * factor).sum_to_size(bias.shape).to(bias.dtype)
    sink_grad = None
    if sink is not None:
        share = torch.exp(wide(sink)[None, :, None] - forward.row_max) / forward.row_sum
        sink_grad = -(share * inner.squeeze(-1)).sum(dim=(0, 2)).to(sink.dtype)
    score_grad = score_grad * options.scale
    return Gradients(
        (score_grad @ _per_query_head(key, query)).to(query.dtype),
        _per_key_head(score_grad.mT @ wide(query), key),
        _per_key_head(value_grad, value),
        bias_grad,
        sink_grad,
    )


def _scores(query: Tensor, key: Tensor, options: Options, hidden: Tensor | None, bias: Tensor | None) -> Tensor:
    """[B, N, Sq, Skv], -inf where hidden."""
    scores = wide(query) @ _per_query_head(key, query).mT
    if bias is not None and options.bias_before_scale:
        scores = scores + wide(bias)
    scores = scores * options.scale
    if bias is not None and not options.bias_before_scale:
        scores = scores + wide(bias)
    return scores if hidden is None else scores.masked_fill(hidden, float("-inf"))


def _statistics(scores: Tensor, sink: Tensor | None) -> tuple[Tensor, Tensor]:
    """Row maximum and row sum [B, N, Sq]; both 0 for a row that hides every key."""
    row_max = scores.amax(dim=-1) if scores.size(-1) else scores.new_full(scores.shape[:-1], float("-inf"))
    if sink is not None:
        row_max = torch.maximum(row_max, wide(sink)[None, :, None])
    row_max = row_max.masked_fill(row_max == float("-inf"), 0.0)
    row_sum = torch.exp(scores - row_max.unsqueeze(-1)).sum(dim=-1)
    if sink is not None:
        row_sum = row_sum + torch.exp(wide(sink)[None, :, None] - row_max)
    return row_max, row_sum


def _probabilities(scores: Tensor, row_max: Tensor, row_sum: Tensor) -> Tensor:
    total = row_sum.unsqueeze(-1)
    return torch.exp(scores - row_max.unsqueeze(-1)) / total.masked_fill(total == 0, 1.0)


def _per_query_head(shared: Tensor, query: Tensor) -> Tensor:
    """Key or value heads, repeated so that each query head has its own (grouped-query attention), float32."""
    group = query.size(1) // shared.size(1)
    return wide(shared if group == 1 else shared.repeat_interleave(group, dim=1))


def _per_key_head(gradient: Tensor, shared: Tensor) -> Tensor:
    """Undo `_per_query_head` for a gradient: add up the query heads that used one key head."""
    batch, heads, length, width = gradient.shape
    return gradient.view(batch, shared.size(1), heads // shared.size(1), length, width).sum(dim=2).to(shared.dtype)
