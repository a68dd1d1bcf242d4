"""Mixture of experts: tokens grouped by expert and brought back.

Meaning: the golden functions of Ascend/op-plugin's tests (test_npu_moe_token_permute_and_unpermute.py,
test_npu_moe_token_permute_with_routing_map.py, test_npu_moe_token_unpermute_with_routing_map.py) and CANN's pages of
the same operators (hicann/ops-transformer moe/). Result dtypes: op_plugin/ops/opapi/MoeToken*.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


def _refuse_padding(operator: str, padded_mode: bool) -> None:
    if padded_mode:
        raise NoReferenceError(operator, "padded_mode, which CANN documents as unsupported")


@kernel("npu::npu_moe_token_permute")
def npu_moe_token_permute(
    tokens: Tensor, indices: Tensor, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Tokens [T, H] grouped by expert, for experts [T] or [T, k]: (tokens [T·k, H], int32 place of each choice).

    `num_out_tokens` cuts the grouped tokens as a slice would (0 and None keep all).
    """
    _refuse_padding("npu::npu_moe_token_permute", padded_mode)
    choices = 1 if indices.dim() == 1 else indices.size(1)
    order = torch.argsort(indices.flatten(), stable=True)
    kept = order[: num_out_tokens or None]
    return tokens[kept // choices], torch.argsort(order, stable=True).to(torch.int32)


@kernel("npu::npu_moe_token_permute_grad_v2")
def npu_moe_token_permute_grad_v2(
    grad_permuted_tokens: Tensor,
    sorted_indices: Tensor,
    tokens_size_0: int,
    tokens_dtype: torch.dtype,
    num_topk: int,
    padded_mode: bool = False,
) -> Tensor:
    """Each token collects the gradients of its copies; copies that were cut off have none."""
    _refuse_padding("npu::npu_moe_token_permute_grad_v2", padded_mode)
    by_choice = _read(wide(grad_permuted_tokens), sorted_indices)
    return by_choice.view(tokens_size_0, num_topk, -1).sum(dim=1).to(tokens_dtype)


def _read(rows: Tensor, places: Tensor) -> Tensor:
    """rows[places], 0 for places beyond the rows."""
    places = places.long()
    found = rows[places.clamp(max=rows.size(0) - 1)]
    return found.masked_fill((places >= rows.size(0)).unsqueeze(-1), 0)


@kernel("npu::npu_moe_token_permute_grad")
def npu_moe_token_permute_grad(
    tokens: Tensor, grad_permuted_tokens: Tensor, indices: Tensor, sorted_indices: Tensor, padded_mode: bool = False
) -> Tensor:
    choices = 1 if indices.dim() == 1 else indices.size(1)
    return npu_moe_token_permute_grad_v2(
        grad_permuted_tokens, sorted_indices, tokens.size(0), tokens.dtype, choices, padded_mode
    )


@kernel("npu::_npu_moe_token_unpermute")
def npu_moe_token_unpermute(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]:
    """(tokens [T, H] summed over their k copies, weighted by probs [T, k]; the permuted tokens, for the backward)."""
    operator = "npu::_npu_moe_token_unpermute"
    _refuse_padding(operator, padded_mode)
    if sorted_indices.numel() != permuted_tokens.size(0):
        raise NoReferenceError(operator, f"{permuted_tokens.size(0)} tokens for {sorted_indices.numel()} places")
    choices = 1 if probs is None else probs.size(1)
    by_token = wide(permuted_tokens[sorted_indices.long()].view(-1, choices, permuted_tokens.size(1)))
    if probs is not None:
        by_token = by_token * wide(probs).unsqueeze(-1)
    return by_token.sum(dim=1).to(permuted_tokens.dtype), permuted_tokens.clone()


@kernel("npu::npu_moe_token_unpermute_grad_v2")
def npu_moe_token_unpermute_grad_v2(
    grad_unpermuted_tokens: Tensor,
    sorted_indices: Tensor,
    permuted_tokens_size_0: int,
    permuted_tokens_dtype: torch.dtype,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
    permuted_tokens: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """(gradient of the permuted tokens, gradient of probs)."""
    operator = "npu::npu_moe_token_unpermute_grad_v2"
    _refuse_padding(operator, padded_mode)
    grad, places = wide(grad_unpermuted_tokens), sorted_indices.long()
    choices = 1 if probs is None else probs.size(1)
    by_choice = grad.repeat_interleave(choices, dim=0)
    weighted = by_choice if probs is None else by_choice * wide(probs).view(-1, 1)
    tokens_grad = grad.new_empty(permuted_tokens_size_0, grad.size(1)).index_copy_(0, places, weighted)
    if probs is None:
        return tokens_grad.to(permuted_tokens_dtype), None
    if permuted_tokens is None:
        raise NoReferenceError(operator, "probs without permuted_tokens")
    probs_grad = (by_choice * wide(permuted_tokens[places])).sum(dim=1).view(probs.shape)
    return tokens_grad.to(permuted_tokens_dtype), probs_grad.to(probs.dtype)


@kernel("npu::npu_moe_token_unpermute_grad")
def npu_moe_token_unpermute_grad(
    permuted_tokens: Tensor,
    grad_unpermuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor | None]:
    sizes = permuted_tokens.size(0), permuted_tokens.dtype
    return npu_moe_token_unpermute_grad_v2(
        grad_unpermuted_tokens, sorted_indices, *sizes, probs, padded_mode, restore_shape, permuted_tokens
    )


@kernel("npu::npu_moe_token_permute_with_routing_map")
def npu_moe_token_permute_with_routing_map(
    tokens: Tensor,
    routing_map: Tensor,
    *,
    probs: Tensor | None = None,
    num_out_tokens: int | None = None,
    drop_and_pad: bool = False,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Tokens [T, H] grouped by the experts that routing_map [T, E] gives them, their probs [T, E], int32 indices.

    Without `drop_and_pad` each token has the same number of experts, and the indices are the places of its copies,
    token by token. With it each expert takes num_out_tokens / E tokens, those without a mark last, and the indices are
    the numbers of the tokens, expert by expert.
    """
    count, experts = routing_map.shape
    wanted = tokens.size(0) if num_out_tokens is None else num_out_tokens
    by_expert = routing_map.bool().T
    if drop_and_pad:
        capacity = wanted // experts
        chosen = by_expert.to(torch.int8).sort(dim=-1, descending=True, stable=True)[1][:, :capacity]
        kept_probs = None if probs is None else probs.T.gather(1, chosen).flatten()
        indices = chosen.flatten()
        return tokens[indices], kept_probs, indices.to(torch.int32)
    token_of_copy = torch.arange(count).expand(experts, -1)[by_expert]
    if token_of_copy.numel() != wanted // count * count or (by_expert.sum(0) != wanted // count).any():
        raise RuntimeError(
            f"npu_moe_token_permute_with_routing_map: without drop_and_pad each token needs num_out_tokens / tokens = "
            f"{wanted}/{count} experts, but the routing map has {token_of_copy.numel()} marks"
        )
    kept_probs = None if probs is None else probs.T[by_expert]
    return tokens[token_of_copy], kept_probs, torch.argsort(token_of_copy, stable=True).to(torch.int32)


@kernel("npu::npu_moe_token_permute_with_routing_map_grad")
def npu_moe_token_permute_with_routing_map_grad(
    permuted_token_out_grad: Tensor,
    probs_grad: Tensor | None,
    sorted_indices: Tensor,
    routing_map: Tensor,
    experts_num: int,
    tokens_num: int,
    drop_and_pad: bool,
) -> tuple[Tensor, Tensor | None]:
    """(gradient of the tokens, gradient of probs)."""
    grad, places = wide(permuted_token_out_grad), sorted_indices.long()
    if drop_and_pad:
        tokens = grad.new_zeros(tokens_num, grad.size(1)).index_add_(0, places, grad)
    else:
        tokens = grad[places].view(tokens_num, -1, grad.size(1)).sum(dim=1)
    tokens = tokens.to(permuted_token_out_grad.dtype)
    if probs_grad is None:
        return tokens, None
    probs = probs_grad.new_zeros(experts_num, tokens_num)
    if drop_and_pad:
        probs.scatter_(1, places.view(experts_num, -1), probs_grad.view(experts_num, -1))
    else:
        probs.masked_scatter_(routing_map.bool().T, probs_grad)
    return tokens, probs.T.contiguous()


def _probs_of_copies(probs: Tensor, routing_map: Tensor | None, places: Tensor, drop_and_pad: bool) -> Tensor:
    """The probability of each permuted token, in the order of the permuted tokens."""
    if drop_and_pad:
        return probs.T.gather(1, places.view(probs.size(1), -1)).flatten()
    if routing_map is None:
        raise NoReferenceError("npu::_npu_moe_token_unpermute_with_routing_map", "probs without routing_map")
    return probs.T[routing_map.bool().T]


@kernel("npu::_npu_moe_token_unpermute_with_routing_map")
def npu_moe_token_unpermute_with_routing_map(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    restore_shape: Sequence[int],
    *,
    probs: Tensor | None = None,
    routing_map: Tensor | None = None,
    drop_and_pad: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """(tokens `restore_shape` summed over their copies, weighted by probs [T, E]; where each copy of each token lies;
    the token of each copy; the probability of each permuted token).
    """
    places = sorted_indices.long()
    copies, kept_probs = wide(permuted_tokens), None
    if probs is not None:
        kept_probs = _probs_of_copies(probs, routing_map, places, drop_and_pad)
        copies = copies * wide(kept_probs).unsqueeze(-1)
    if drop_and_pad:
        token_of_copy, order = places.sort(stable=True)
        total = copies.new_zeros(tuple(restore_shape)).index_add_(0, places, copies)
    else:
        order = places
        token_of_copy = torch.arange(places.numel()) // (places.numel() // restore_shape[0])
        total = copies[places].view(restore_shape[0], -1, copies.size(1)).sum(dim=1)
    indices = (t.to(sorted_indices.dtype) for t in (order, token_of_copy))
    return total.to(permuted_tokens.dtype), *indices, kept_probs


@kernel("npu::npu_moe_token_unpermute_with_routing_map_grad")
def npu_moe_token_unpermute_with_routing_map_grad(
    unpermuted_tokens_grad: Tensor,
    out_index: Tensor,
    permuted_token_id: Tensor,
    routing_map: Tensor | None,
    permuted_tokens: Tensor | None,
    probs: Tensor | None,
    drop_and_pad: bool,
    restore_shape: Sequence[int],
) -> tuple[Tensor, Tensor | None]:
    """(gradient of the permuted tokens, gradient of probs). Without drop_and_pad the token of copy i of `out_index` is
    i divided by the copies of a token, and `permuted_token_id` is not read.
    """
    operator = "npu::npu_moe_token_unpermute_with_routing_map_grad"
    grad, order = wide(unpermuted_tokens_grad), out_index.long()
    token_of_copy = (
        permuted_token_id.long() if drop_and_pad else torch.arange(order.numel()) // (order.numel() // grad.size(0))
    )
    tokens_grad = torch.empty(order.numel(), grad.size(1), dtype=grad.dtype).index_copy_(0, order, grad[token_of_copy])
    if probs is None:
        return tokens_grad.to(unpermuted_tokens_grad.dtype), None
    if permuted_tokens is None:
        raise NoReferenceError(operator, "probs without permuted_tokens")
    places = torch.empty_like(order).index_copy_(0, order, token_of_copy)  # the token of each permuted token
    kept_probs = _probs_of_copies(probs, routing_map, places, drop_and_pad)
    of_copies = (tokens_grad * wide(permuted_tokens)).sum(dim=1).to(unpermuted_tokens_grad.dtype)
    probs_grad = of_copies.new_zeros(probs.size(1), probs.size(0))
    if drop_and_pad:
        probs_grad.scatter_(1, places.view(probs.size(1), -1), of_copies.view(probs.size(1), -1))
    else:
        assert routing_map is not None
        probs_grad.masked_scatter_(routing_map.bool().T, of_copies)
    tokens_grad = tokens_grad * wide(kept_probs).unsqueeze(-1)
    return tokens_grad.to(unpermuted_tokens_grad.dtype), probs_grad.T.contiguous()
