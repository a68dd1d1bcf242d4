"""Mixture of experts: routing tokens to experts and back, gating, and products per expert.

Meaning: the golden functions of Ascend/op-plugin's tests (test_npu_moe_token_permute_and_unpermute.py,
test_npu_moe_gating_top_k_softmax.py, test_npu_grouped_matmul.py). Padded and dropping modes, quantised products and
fused activations have no reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


def _refuse_padding(operator: str, padded_mode: bool) -> None:
    if padded_mode:
        raise NoReferenceError(operator, "padded_mode")


@kernel("npu::npu_moe_token_permute")
def npu_moe_token_permute(
    tokens: Tensor, indices: Tensor, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Tokens [T, H] grouped by expert, for experts [T] or [T, k]: (tokens [T·k, H], int32 place of each choice)."""
    operator = "npu::npu_moe_token_permute"
    _refuse_padding(operator, padded_mode)
    if num_out_tokens not in (None, 0, indices.numel()):
        raise NoReferenceError(operator, f"num_out_tokens={num_out_tokens} of {indices.numel()}")
    choices = 1 if indices.dim() == 1 else indices.size(1)
    order = torch.argsort(indices.flatten(), stable=True)
    return tokens[order // choices], torch.argsort(order, stable=True).to(torch.int32)


@kernel("npu::npu_moe_token_permute_grad_v2")
def npu_moe_token_permute_grad_v2(
    grad_permuted_tokens: Tensor,
    sorted_indices: Tensor,
    tokens_size_0: int,
    tokens_dtype: torch.dtype,
    num_topk: int,
    padded_mode: bool = False,
) -> Tensor:
    """Each token collects the gradients of its copies."""
    _refuse_padding("npu::npu_moe_token_permute_grad_v2", padded_mode)
    by_token = grad_permuted_tokens[sorted_indices.long()].view(tokens_size_0, num_topk, -1)
    return by_token.float().sum(dim=1).to(tokens_dtype)


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
    by_token = permuted_tokens[sorted_indices.long()].view(-1, choices, permuted_tokens.size(1)).float()
    if probs is not None:
        by_token = by_token * probs.float().unsqueeze(-1)
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
    grad, places = grad_unpermuted_tokens.float(), sorted_indices.long()
    choices = 1 if probs is None else probs.size(1)
    by_choice = grad.repeat_interleave(choices, dim=0)
    weighted = by_choice if probs is None else by_choice * probs.float().view(-1, 1)
    tokens_grad = grad.new_empty(permuted_tokens_size_0, grad.size(1)).index_copy_(0, places, weighted)
    if probs is None:
        return tokens_grad.to(permuted_tokens_dtype), None
    if permuted_tokens is None:
        raise NoReferenceError(operator, "probs without permuted_tokens")
    probs_grad = (by_choice * permuted_tokens[places].float()).sum(dim=1).view(probs.shape)
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


@kernel("npu::npu_moe_gating_top_k_softmax")
def npu_moe_gating_top_k_softmax(
    x: Tensor, finished: Tensor | None = None, k: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """(the k largest probabilities, their experts int32, row index int32); finished rows get the expert number E."""
    if x.dim() != 2:
        raise NoReferenceError("npu::npu_moe_gating_top_k_softmax", f"x of {x.dim()} dimensions")
    probabilities = torch.softmax(x.float(), dim=-1).to(x.dtype)
    values, experts = probabilities.sort(dim=-1, descending=True, stable=True)
    values, experts = values[:, :k].contiguous(), experts[:, :k]
    if finished is not None:
        experts = torch.where(finished.view(-1, 1), x.size(-1), experts)
    rows = torch.arange(values.numel(), dtype=torch.int32).view(k, -1).t().contiguous()
    return values, experts.to(torch.int32), rows


_PLAIN = {"bias", "group_list", "split_item", "group_type", "group_list_type", "tuning_config"}
_BY_PAIRS, _BY_ROWS, _BY_COLUMNS = -1, 0, 2


@kernel("npu::npu_grouped_matmul", "npu::npu_grouped_matmul.List")
def npu_grouped_matmul(x: Sequence[Tensor], weight: Sequence[Tensor], **named: Any) -> list[Tensor]:
    """x_i·w_i + b_i for each group, as a list (split_item 0, 1) or as one tensor (2, 3).

    group_type -1 pairs the lists; 0 cuts the rows, 2 the columns of a single x, at `group_list`: the ends of the
    groups, or with group_list_type 1 their sizes.
    """
    operator = "npu::npu_grouped_matmul"
    extra = sorted(n for n, v in named.items() if n not in _PLAIN and v is not None and v != 0)
    if extra:
        raise NoReferenceError(operator, ", ".join(extra))
    group_type = _BY_PAIRS if named.get("group_type") is None else named["group_type"]
    split_item = named.get("split_item") or 0
    weights = list(weight[0].unbind(0)) if len(weight) == 1 and weight[0].dim() == 3 else list(weight)
    inputs = list(x)
    if group_type not in (_BY_PAIRS, _BY_ROWS, _BY_COLUMNS):
        raise RuntimeError(f"The group type must be -1, 0 or 2, but got {group_type}")
    if len(inputs) == 1 and group_type != _BY_PAIRS:
        dim = 0 if group_type == _BY_ROWS else 1
        sizes = _group_sizes(named)
        if sum(sizes) != inputs[0].size(dim):
            raise NoReferenceError(operator, f"groups of {sum(sizes)} in a dimension of {inputs[0].size(dim)}")
        inputs = list(inputs[0].split(sizes, dim))
        if group_type == _BY_COLUMNS and len(weights) == 1:
            weights = list(weights[0].split(sizes, 0))
    if len(inputs) != len(weights):
        raise RuntimeError(f"npu_grouped_matmul: {len(inputs)} groups of x for {len(weights)} weights")
    bias = _biases(named.get("bias"), len(weights))
    products = [_product(*group) for group in zip(inputs, weights, bias, strict=True)]
    if split_item in (0, 1):
        return products
    return [torch.stack(products) if group_type == _BY_COLUMNS else torch.cat(products)]


def _group_sizes(named: dict[str, Any]) -> list[int]:
    given = named.get("group_list")
    if given is None:
        raise RuntimeError("npu_grouped_matmul: group_list is needed to cut a single x")
    numbers = given.tolist() if isinstance(given, Tensor) else list(given)
    if named.get("group_list_type") == 1:
        return numbers
    return [end - start for start, end in zip([0, *numbers[:-1]], numbers, strict=True)]


def _biases(given: Sequence[Tensor] | None, groups: int) -> list[Tensor | None]:
    if not given:
        return [None] * groups
    return list(given[0].unbind(0)) if len(given) == 1 and given[0].dim() == 2 else list(given)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = x.float() @ weight.float()
    return (product if bias is None else product + bias.float()).to(x.dtype)


@kernel("npu::npu_ring_attention_update")
def npu_ring_attention_update(
    prev_attn_out: Tensor,
    prev_softmax_max: Tensor,
    prev_softmax_sum: Tensor,
    cur_attn_out: Tensor,
    cur_softmax_max: Tensor,
    cur_softmax_sum: Tensor,
    *,
    actual_seq_qlen: Tensor | None = None,
    input_layout: str = "SBH",
    input_softmax_layout: str = "",
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention over two parts of the keys from the attention over each (golden function of op-plugin's test)."""
    if input_layout != "SBH" and (input_layout, input_softmax_layout) != ("TND", "TND"):
        raise NoReferenceError(
            "npu::npu_ring_attention_update", f"{input_layout} with softmax {input_softmax_layout!r}"
        )
    row_max = torch.maximum(prev_softmax_max, cur_softmax_max)
    prev_sum = prev_softmax_sum * torch.exp(prev_softmax_max - row_max)
    cur_sum = cur_softmax_sum * torch.exp(cur_softmax_max - row_max)
    row_sum = prev_sum + cur_sum

    def share(part: Tensor) -> Tensor:
        factor = (part / row_sum)[..., :1]
        return factor.permute(2, 0, 1, 3) if input_layout == "SBH" else factor

    def heads(attention: Tensor) -> Tensor:
        return attention.float().unflatten(-1, (row_max.size(1), -1)) if input_layout == "SBH" else attention.float()

    merged = heads(prev_attn_out) * share(prev_sum) + heads(cur_attn_out) * share(cur_sum)
    return merged.reshape(prev_attn_out.shape).to(prev_attn_out.dtype), row_max, row_sum
