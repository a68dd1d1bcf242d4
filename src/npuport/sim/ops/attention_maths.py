"""What fused attention computes, in plain torch: out = dropout(softmax(mask(scale·(q·kᵀ + pse))))·v, and its gradients.

Source: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_fusion_attention.md (formula, layouts, sparse
modes, sink). The page adds the position encoding `pse` before the scale in its formula and after it in one example; the
formula is followed (pse_type 1 of CANN's aclnnFlashAttentionScoreV2 says the same). Everything is computed in float32
and rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from npuport.sim.ops.unavailable import NoReferenceError

COMPRESSED = (2048, 2048)
COMPRESSED_PREFIX = (3072, 2048)
MODE_DEFAULT, MODE_ALL, MODE_LEFT_UP, MODE_RIGHT_DOWN, MODE_BAND, MODE_PREFIX, MODE_PREFIX_COMPRESSED = range(7)


@dataclass(frozen=True)
class Options:
    """What does not depend on the tensors. `pse_before_scale` is pse_type 1; lengths are in positions."""

    scale: float = 1.0
    keep_prob: float = 1.0
    sparse_mode: int = 0
    pre_tokens: int = 2147483647
    next_tokens: int = 2147483647
    pse_before_scale: bool = True
    prefix: tuple[int, ...] = ()


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
    query: Tensor
    key: Tensor
    value: Tensor
    pse: Tensor | None
    sink: Tensor | None


def hidden_positions(mask: Tensor | None, queries: int, keys: int, options: Options) -> Tensor | None:
    """Bool tensor that broadcasts to [B, N, queries, keys], True where a key is hidden from a query; None hides
    nothing.

    Raises RuntimeError for a mask whose shape does not fit its sparse mode. Without a mask the mode is ignored (as on
    the device).
    """
    if mask is None:
        return None
    mode = options.sparse_mode
    if mode in (MODE_DEFAULT, MODE_ALL, MODE_PREFIX):
        if mask.shape[-2:] != (queries, keys):
            raise RuntimeError(
                f"npu_fusion_attention: with sparse_mode {mode} atten_mask must end in [{queries}, {keys}], "
                f"got {list(mask.shape)}"
            )
        return mask.bool()
    expected = COMPRESSED_PREFIX if mode == MODE_PREFIX_COMPRESSED else COMPRESSED
    if mode > MODE_PREFIX_COMPRESSED:
        raise NoReferenceError("npu::npu_fusion_attention", f"sparse_mode {mode} (sequences split across devices)")
    if tuple(mask.shape[-2:]) != expected:
        raise RuntimeError(
            f"npu_fusion_attention: with sparse_mode {mode} atten_mask must be the compressed {list(expected)} mask, "
            f"got {list(mask.shape)}"
        )
    row, column = torch.arange(queries)[:, None], torch.arange(keys)[None, :]
    ahead = column - row if mode == MODE_LEFT_UP else column - row - (keys - queries)
    if mode in (MODE_LEFT_UP, MODE_RIGHT_DOWN):
        return ahead > 0
    if mode == MODE_BAND:
        return (ahead > options.next_tokens) | (ahead < -options.pre_tokens)
    lengths = torch.tensor(options.prefix)[:, None, None, None]
    return (ahead > 0) & (column >= lengths)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: Options,
    hidden: Tensor | None = None,
    pse: Tensor | None = None,
    sink: Tensor | None = None,
    survivors: Tensor | None = None,
) -> Attention:
    """Attention of query [B, N, Sq, D] over key [B, Nkv, Skv, D] and value [B, Nkv, Skv, Dv], N a multiple of Nkv.

    `survivors` [B, N, Sq, Skv] is 1 where dropout keeps a probability; `sink` [N] is one extra logit per head. A row
    that hides every key gives 0.
    """
    probabilities, row_max, row_sum = _softmax(query, key, options, hidden, pse, sink)
    if survivors is not None:
        probabilities = probabilities * (survivors.float() / options.keep_prob)
    output = probabilities @ _per_query_head(value, query)
    return Attention(output.to(query.dtype), row_max, row_sum)


def differentiate(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: Options,
    hidden: Tensor | None = None,
    pse: Tensor | None = None,
    sink: Tensor | None = None,
    survivors: Tensor | None = None,
) -> Gradients:
    """Gradients of `attend`'s output for all its tensors, each in the dtype and shape of its tensor."""
    grad = grad.float()
    probabilities, row_max, row_sum = _softmax(query, key, options, hidden, pse, sink)
    keep = 1.0 if survivors is None else (survivors.float() / options.keep_prob)
    value_grad = (probabilities * keep).mT @ grad
    reached = (grad @ _per_query_head(value, query).mT) * keep
    inner = (reached * probabilities).sum(dim=-1, keepdim=True)
    score_grad = probabilities * (reached - inner)
    pse_grad = None
    if pse is not None:
        pse_grad = (
            (score_grad * (options.scale if options.pse_before_scale else 1.0)).sum_to_size(pse.shape).to(pse.dtype)
        )
    sink_grad = None
    if sink is not None:
        share = torch.exp(sink.float()[None, :, None] - row_max) / row_sum
        sink_grad = -(share * inner.squeeze(-1)).sum(dim=(0, 2))
    score_grad = score_grad * options.scale
    return Gradients(
        (score_grad @ _per_query_head(key, query)).to(query.dtype),
        _per_key_head(score_grad.mT @ query.float(), key),
        _per_key_head(value_grad, value),
        pse_grad,
        sink_grad,
    )


def _softmax(
    query: Tensor, key: Tensor, options: Options, hidden: Tensor | None, pse: Tensor | None, sink: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities [B, N, Sq, Skv], row maximum and row sum [B, N, Sq], all float32."""
    scores = query.float() @ _per_query_head(key, query).mT
    if pse is not None and options.pse_before_scale:
        scores = scores + pse.float()
    scores = scores * options.scale
    if pse is not None and not options.pse_before_scale:
        scores = scores + pse.float()
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    row_max = scores.amax(dim=-1)
    if sink is not None:
        row_max = torch.maximum(row_max, sink.float()[None, :, None])
    row_max = row_max.masked_fill(row_max == float("-inf"), 0.0)
    weights = torch.exp(scores - row_max.unsqueeze(-1))
    row_sum = weights.sum(dim=-1)
    if sink is not None:
        row_sum = row_sum + torch.exp(sink.float()[None, :, None] - row_max)
    probabilities = weights / row_sum.unsqueeze(-1).masked_fill(row_sum.unsqueeze(-1) == 0, 1.0)
    return probabilities, row_max, row_sum


def _per_query_head(shared: Tensor, query: Tensor) -> Tensor:
    """Key or value heads, repeated so that each query head has its own (grouped-query attention), float32."""
    group = query.size(1) // shared.size(1)
    return (shared if group == 1 else shared.repeat_interleave(group, dim=1)).float()


def _per_key_head(gradient: Tensor, shared: Tensor) -> Tensor:
    """Undo `_per_query_head` for a gradient: add up the query heads that used one key head."""
    batch, heads, length, width = gradient.shape
    return gradient.view(batch, shared.size(1), heads // shared.size(1), length, width).sum(dim=2).to(shared.dtype)
