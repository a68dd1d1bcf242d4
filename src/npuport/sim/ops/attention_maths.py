"""What fused attention computes, in plain torch: dropout(softmax(mask(scale·(q·kᵀ + bias))))·v, and its gradients.

Source: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_fusion_attention.md (formula, layouts, sink). The
page adds the position bias before the scale in its formula and after it in one example; the formula is followed
(pse_type 1 of CANN's aclnnFlashAttentionScoreV2 says the same). Everything is computed in float32 and rounded once.

The device never holds all scores, so neither does this: heads are taken a few at a time, which changes no bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from npuport.sim.ops.precision import wide

_SCORES_AT_A_TIME = 2**22  # 16 MiB in float32, of which a backward pass holds about six; twice as fast as all at once


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


@dataclass(frozen=True)
class _Heads:
    """Some batches, and in them some key heads with the query heads that use them."""

    batches: slice
    key_heads: slice
    query_heads: slice

    def of(self, shared: Tensor) -> Tensor:
        """That part of key or value [B, Nkv, Skv, D]."""
        return shared[self.batches, self.key_heads]

    def per_query(self, tensor: Tensor) -> Tensor:
        """That part of [B, N, …], where a dimension of 1 stands for all."""
        batches = self.batches if tensor.size(0) > 1 else slice(None)
        return tensor[batches, self.query_heads if tensor.size(1) > 1 else slice(None)]


def _heads(query: Tensor, key: Tensor) -> Iterator[_Heads]:
    """All heads, in parts with few enough scores."""
    batches, key_heads = key.shape[:2]
    group = query.size(1) // max(key_heads, 1)
    scores = group * query.size(2) * key.size(2)  # of one key head
    heads_at_a_time = max(1, min(key_heads, _SCORES_AT_A_TIME // max(scores, 1)))
    batches_at_a_time = max(1, _SCORES_AT_A_TIME // max(scores * key_heads, 1))
    for batch in range(0, batches, batches_at_a_time):
        for head in range(0, key_heads, heads_at_a_time):
            end = min(head + heads_at_a_time, key_heads)
            yield _Heads(slice(batch, batch + batches_at_a_time), slice(head, end), slice(head * group, end * group))


def _four_dimensions(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor[(None,) * (4 - tensor.dim())]


@dataclass(frozen=True)
class _Operands:
    """Arguments of `attend`; hidden, bias and survivors in four dimensions, which broadcast."""

    query: Tensor
    key: Tensor
    value: Tensor
    options: Options
    hidden: Tensor | None
    bias: Tensor | None
    survivors: Tensor | None
    sink: Tensor | None

    def part(self, heads: _Heads) -> _Operands:
        def cut(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else heads.per_query(tensor)

        return _Operands(
            heads.per_query(self.query),
            heads.of(self.key),
            heads.of(self.value),
            self.options,
            cut(self.hidden),
            cut(self.bias),
            cut(self.survivors),
            None if self.sink is None else self.sink[heads.query_heads],
        )


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
    hidden, per_score, survivors = map(_four_dimensions, (hidden, bias, survivors))
    operands = _Operands(query, key, value, options, hidden, per_score, survivors, sink)
    row_max = wide(query).new_zeros(query.shape[:3])
    found = Attention(query.new_zeros(*query.shape[:3], value.size(-1)), row_max, torch.zeros_like(row_max))
    for heads in _heads(query, key):
        part = _attend(operands.part(heads))
        for whole, piece in zip(_tensors(found), _tensors(part), strict=True):
            whole[heads.batches, heads.query_heads] = piece
    return found


def _tensors(attention: Attention) -> tuple[Tensor, Tensor, Tensor]:
    return attention.output, attention.row_max, attention.row_sum


def _attend(given: _Operands) -> Attention:
    scores = _scores(given)
    row_max, row_sum = _statistics(scores, given.sink)
    probabilities = _probabilities(scores, row_max, row_sum)
    if given.survivors is not None:
        probabilities = probabilities * (given.survivors.to(probabilities.dtype) / given.options.keep_prob)
    output = probabilities @ _per_query_head(given.value, given.query)
    return Attention(output.to(given.query.dtype), row_max, row_sum)


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
    hidden, per_score, survivors = map(_four_dimensions, (hidden, bias, survivors))
    operands = _Operands(query, key, value, options, hidden, per_score, survivors, sink)
    found = Gradients(
        torch.zeros_like(query),
        torch.zeros_like(key),
        torch.zeros_like(value),
        None if operands.bias is None else torch.zeros_like(wide(operands.bias)),
        None if sink is None else torch.zeros_like(wide(sink)),
    )
    for heads in _heads(query, key):
        saved = forward and Attention(*(heads.per_query(tensor) for tensor in _tensors(forward)))
        part = _differentiate(wide(heads.per_query(grad)), operands.part(heads), saved)
        found.query[heads.batches, heads.query_heads] = part.query
        found.key[heads.batches, heads.key_heads] = part.key
        found.value[heads.batches, heads.key_heads] = part.value
        if found.bias is not None and part.bias is not None:
            heads.per_query(found.bias).add_(part.bias)
        if found.sink is not None and part.sink is not None:
            found.sink[heads.query_heads] += part.sink
    return dataclasses.replace(
        found,
        bias=None if found.bias is None or bias is None else found.bias.reshape(bias.shape).to(bias.dtype),
        sink=None if found.sink is None or sink is None else found.sink.to(sink.dtype),
    )


def _differentiate(grad: Tensor, given: _Operands, forward: Attention | None) -> Gradients:
    """As `differentiate`, but the gradients of bias and sink in float32, to be added up."""
    query, key, value, options = given.query, given.key, given.value, given.options
    forward = forward or _attend(given)
    probabilities = _probabilities(_scores(given), forward.row_max, forward.row_sum)
    keep = 1.0 if given.survivors is None else given.survivors.to(grad.dtype) / options.keep_prob
    value_grad = (probabilities * keep).mT @ grad
    reached = (grad @ _per_query_head(value, query).mT) * keep
    inner = (grad * wide(forward.output)).sum(dim=-1, keepdim=True)
    score_grad = probabilities * (reached - inner)
    bias_grad = None
    if given.bias is not None:
        factor = options.scale if options.bias_before_scale else 1.0
        bias_grad = (score_grad * factor).sum_to_size(given.bias.shape)
    sink_grad = None
    if given.sink is not None:
        share = torch.exp(wide(given.sink)[None, :, None] - forward.row_max) / forward.row_sum
        sink_grad = -(share * inner.squeeze(-1)).sum(dim=(0, 2))
    score_grad = score_grad * options.scale
    return Gradients(
        (score_grad @ _per_query_head(key, query)).to(query.dtype),
        _per_key_head(score_grad.mT @ wide(query), key),
        _per_key_head(value_grad, value),
        bias_grad,
        sink_grad,
    )


def _scores(given: _Operands) -> Tensor:
    """[B, N, Sq, Skv], -inf where hidden."""
    bias, options = given.bias, given.options
    scores = wide(given.query) @ _per_query_head(given.key, given.query).mT
    if bias is not None and options.bias_before_scale:
        scores = scores + wide(bias)
    scores = scores * options.scale
    if bias is not None and not options.bias_before_scale:
        scores = scores + wide(bias)
    return scores if given.hidden is None else scores.masked_fill(given.hidden, float("-inf"))


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
