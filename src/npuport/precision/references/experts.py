"""Mixtures of experts (op-plugin docs: npu_moe_token_permute, npu_moe_token_unpermute, npu_moe_gating_top_k,
npu_moe_gating_top_k_softmax and their gradients)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from npuport.findings import say
from npuport.precision.references.formulas import Partly, UncoveredError, formula, gradients, refuse

_SOFTMAX, _SIGMOID = 0, 1


@formula("npu.npu_moe_token_permute")
def token_permute(
    tokens: Tensor, indices: Tensor, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Copies of the tokens in the order of their experts, and where each copy lies."""
    refuse("padded_mode", padded_mode, False)
    order = torch.sort(indices.flatten(), stable=True).indices
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order))
    copies = tokens.repeat_interleave(indices.numel() // len(tokens), 0)
    return copies[order][: num_out_tokens or None], places.to(torch.int32)


def _permute_grad(grad: Tensor, places: Tensor, tokens: int) -> Tensor:
    """Each token gets the gradients of its copies; of those that were cut off there are none."""
    padded = torch.cat((grad, grad.new_zeros(max(places.numel() - len(grad), 0), grad.size(1))))
    return padded[places.long()].reshape(tokens, -1, grad.size(1)).sum(1)


@formula("npu.npu_moe_token_permute_grad_v2")
def token_permute_grad_v2(
    grad_permuted_tokens: Tensor,
    sorted_indices: Tensor,
    tokens_size_0: int,
    tokens_dtype: Any,
    num_topK: int,
    padded_mode: bool = False,
) -> Tensor:
    refuse("padded_mode", padded_mode, False)
    return _permute_grad(grad_permuted_tokens, sorted_indices, tokens_size_0)


@formula("npu.npu_moe_token_permute_grad")
def token_permute_grad(
    tokens: Tensor, grad_permuted_tokens: Tensor, indices: Tensor, sorted_indices: Tensor, padded_mode: bool = False
) -> Tensor:
    refuse("padded_mode", padded_mode, False)
    return _permute_grad(grad_permuted_tokens, sorted_indices, len(tokens))


def _unpermuted(rows: Tensor, places: Tensor, probs: Tensor | None) -> Tensor:
    """The sum of each token's copies, weighted."""
    copies = rows[places.long()].reshape(-1, 1 if probs is None else probs.size(1), rows.size(1))
    return (copies if probs is None else copies * probs[..., None]).sum(1)


@formula("npu._npu_moe_token_unpermute")
def token_unpermute(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]:
    """The tokens, and the permuted ones as they were given."""
    refuse("padded_mode", padded_mode, False)
    if sorted_indices.numel() != len(permuted_tokens):
        refuse("sorted_indices", sorted_indices)
    return _unpermuted(permuted_tokens, sorted_indices, probs), permuted_tokens


def _unpermute_grad(
    grad: Tensor, rows: Tensor | None, places: Tensor, probs: Tensor | None, number: int
) -> tuple[Tensor, Tensor | None]:
    if probs is None:
        rows = grad.new_zeros(number, grad.size(1)) if rows is None else rows
        return gradients(lambda one: _unpermuted(one, places, None), [rows], grad)[0], None
    if rows is None:
        raise UncoveredError(say("no reference formula for {argument}", argument="permuted_tokens=None"))
    one, two = gradients(lambda tokens, weights: _unpermuted(tokens, places, weights), [rows, probs], grad)
    return one, two


@formula("npu.npu_moe_token_unpermute_grad_v2")
def token_unpermute_grad_v2(
    grad_unpermuted_tokens: Tensor,
    sorted_indices: Tensor,
    permuted_tokens_size_0: int,
    permuted_tokens_dtype: Any,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
    permuted_tokens: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    refuse("padded_mode", padded_mode, False)
    return _unpermute_grad(grad_unpermuted_tokens, permuted_tokens, sorted_indices, probs, permuted_tokens_size_0)


@formula("npu.npu_moe_token_unpermute_grad")
def token_unpermute_grad(
    permuted_tokens: Tensor,
    grad_unpermuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor | None]:
    refuse("padded_mode", padded_mode, False)
    return _unpermute_grad(grad_unpermuted_tokens, permuted_tokens, sorted_indices, probs, len(permuted_tokens))


def _copies(routing_map: Tensor) -> Tensor:
    """The token of each copy, expert by expert."""
    return torch.nonzero(routing_map.bool().transpose(0, 1))[:, 1]


@formula("npu.npu_moe_token_permute_with_routing_map")
def token_permute_with_routing_map(
    tokens: Tensor,
    routing_map: Tensor,
    *,
    probs: Tensor | None = None,
    num_out_tokens: int | None = None,
    drop_and_pad: bool = False,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """``routing_map`` is [tokens, experts]; the places of the copies are told token by token."""
    refuse("drop_and_pad", drop_and_pad, False)
    owners = _copies(routing_map)
    places = torch.sort(owners, stable=True).indices.to(torch.int32)
    chosen = None if probs is None else probs.transpose(0, 1)[routing_map.bool().transpose(0, 1)]
    return tokens[owners], chosen, places


@formula("npu.npu_moe_token_permute_with_routing_map_grad")
def token_permute_with_routing_map_grad(
    permuted_token_out_grad: Tensor,
    probs_grad: Tensor | None,
    sorted_indices: Tensor,
    routing_map: Tensor,
    experts_num: int,
    tokens_num: int,
    drop_and_pad: bool,
) -> tuple[Tensor, Tensor | None]:
    refuse("drop_and_pad", drop_and_pad, False)
    grad = permuted_token_out_grad
    of_tokens = grad.new_zeros(tokens_num, grad.size(1)).index_add(0, _copies(routing_map), grad)
    if probs_grad is None:
        return of_tokens, None
    of_probs = probs_grad.new_zeros(experts_num, tokens_num)
    of_probs[routing_map.bool().transpose(0, 1)] = probs_grad
    return of_tokens, of_probs.transpose(0, 1)


def _of_copies(probs: Tensor, routing_map: Tensor | None) -> Tensor:
    """The probability of each copy, expert by expert."""
    if routing_map is None:
        raise UncoveredError(say("no reference formula for {argument}", argument="routing_map=None"))
    return probs.transpose(0, 1)[routing_map.bool().transpose(0, 1)]


def _restored(rows: Tensor, places: Tensor, tokens: int, weights: Tensor | None) -> Tensor:
    """The sum of each token's copies; their places are told token by token."""
    weighted = rows if weights is None else rows * weights[:, None]
    return weighted[places.long()].reshape(tokens, -1, rows.size(1)).sum(1)


@formula("npu._npu_moe_token_unpermute_with_routing_map")
def token_unpermute_with_routing_map(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    restore_shape: Sequence[int],
    *,
    probs: Tensor | None = None,
    routing_map: Tensor | None = None,
    drop_and_pad: bool = False,
) -> tuple[Tensor | None, ...]:
    """(tokens, the places and the token of each copy, the probability of each copy)."""
    refuse("drop_and_pad", drop_and_pad, False)
    weights = None if probs is None else _of_copies(probs, routing_map)
    number = sorted_indices.numel()
    owners = (torch.arange(number) // (number // restore_shape[0])).to(sorted_indices.dtype)
    return _restored(permuted_tokens, sorted_indices, restore_shape[0], weights), sorted_indices, owners, weights


@formula("npu.npu_moe_token_unpermute_with_routing_map_grad")
def token_unpermute_with_routing_map_grad(
    unpermuted_tokens_grad: Tensor,
    out_index: Tensor,
    permuted_token_id: Tensor,
    routing_map: Tensor | None,
    permuted_tokens: Tensor | None,
    probs: Tensor | None,
    drop_and_pad: bool,
    restore_shape: Sequence[int],
) -> tuple[Tensor | None, ...]:
    """The gradients of the permuted tokens and of the probabilities [tokens, experts]."""
    refuse("drop_and_pad", drop_and_pad, False)
    grad, tokens = unpermuted_tokens_grad, restore_shape[0]
    if probs is None or permuted_tokens is None:
        if probs is not None:
            raise UncoveredError(say("no reference formula for {argument}", argument="permuted_tokens=None"))
        rows = grad.new_zeros(out_index.numel(), grad.size(1))
        return gradients(lambda one: _restored(one, out_index, tokens, None), [rows], grad)[0], None
    return tuple(
        gradients(
            lambda rows, shares: _restored(rows, out_index, tokens, _of_copies(shares, routing_map)),
            [permuted_tokens, probs],
            grad,
        )
    )


def _marked(experts: Tensor, finished: Tensor | None, number: int) -> Tensor:
    """Rows that are finished get a number that no expert has."""
    marked = experts if finished is None else torch.where(finished[..., None], number, experts)
    return marked.to(torch.int32)


def _largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[..., :k], indices[..., :k]


@formula("npu.npu_moe_gating_top_k_softmax")
def gating_top_k_softmax(x: Tensor, finished: Tensor | None = None, k: int = 1) -> tuple[Tensor, ...]:
    values, experts = _largest(torch.softmax(x, -1), k)
    number = values.numel() // k
    rows = (torch.arange(number)[:, None] + torch.arange(k) * number).reshape(values.shape).to(torch.int32)
    return values, _marked(experts, finished, x.size(-1)), rows


@formula("npu.npu_moe_gating_top_k_softmax_v2")
def gating_top_k_softmax_v2(
    x: Tensor,
    *,
    k: int = 1,
    finished: Tensor | None = None,
    renorm: int | None = 0,
    output_softmax: bool | None = False,
) -> tuple[Tensor, ...]:
    """``renorm`` 0: the largest of the softmax; 1: the softmax of the largest."""
    refuse("renorm", renorm, 0, 1)
    shares = torch.softmax(x, -1)
    values, experts = _largest(x if renorm else shares, k)
    shown = shares if output_softmax and not renorm else x.new_empty(0)
    return torch.softmax(values, -1) if renorm else values, _marked(experts, finished, x.size(-1)), shown


@formula("npu.npu_moe_gating_top_k")
def gating_top_k(
    x: Tensor,
    k: int,
    *,
    bias: Tensor | None = None,
    input_ids: Tensor | None = None,
    tid2eid: Tensor | None = None,
    k_group: int = 1,
    group_count: int = 1,
    group_select_mode: int = 0,
    renorm: int = 0,
    norm_type: int = _SOFTMAX,
    out_flag: bool = False,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> tuple[Any, ...]:
    """The bias decides which experts are taken and not their weights. The third result is written with ``out_flag``."""
    for name, value in (("input_ids", input_ids), ("tid2eid", tid2eid)):
        refuse(name, value)
    refuse("renorm", renorm, 0)
    refuse("norm_type", norm_type, _SOFTMAX, _SIGMOID)
    refuse("group_select_mode", group_select_mode, 0, 1)
    shares = torch.sigmoid(x) if norm_type == _SIGMOID else torch.softmax(x, -1)
    scores = (shares if bias is None else shares + bias).unflatten(-1, (group_count, -1))
    ranked = scores.sort(-1, descending=True).values
    _, best = _largest(ranked[..., 0] if group_select_mode == 0 else ranked[..., :2].sum(-1), k_group)
    counts = torch.zeros(len(x), group_count, dtype=torch.bool).scatter(1, best, True)
    _, experts = _largest(torch.where(counts[..., None], scores, -torch.inf).flatten(1), k)
    weights = shares.gather(1, experts)
    if norm_type == _SIGMOID:
        weights = weights / (weights.sum(-1, keepdim=True) + eps)
    known = torch.full((1, 1), bool(out_flag))
    return weights * routed_scaling_factor, experts.to(torch.int32), Partly(shares, known)


@formula("npu.npu_moe_gating_top_k_backward")
def gating_top_k_backward(
    x_norm: Tensor,
    grad_y: Tensor,
    expertIdx: Tensor,
    *,
    renorm: int = 0,
    norm_type: int = _SOFTMAX,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> Tensor:
    """From the softmax or sigmoid that the forward pass gave."""
    refuse("renorm", renorm, 0)
    refuse("norm_type", norm_type, _SOFTMAX, _SIGMOID)

    def weights(shares: Tensor) -> Tensor:
        chosen = shares.gather(1, expertIdx.long())
        chosen = chosen / (chosen.sum(-1, keepdim=True) + eps) if norm_type == _SIGMOID else chosen
        return chosen * routed_scaling_factor

    of_shares = gradients(weights, [x_norm], grad_y)[0]
    if norm_type == _SIGMOID:
        return of_shares * x_norm * (1 - x_norm)
    return x_norm * (of_shares - (of_shares * x_norm).sum(-1, keepdim=True))
