"""Mixture of experts: rows copied to the experts that work on them, and the results collected.

Meaning: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_moe_init_routing.md, …_init_routing_v2.md,
…_re_routing.md, …_finalize_routing.md and …_compute_expert_tokens.md (most with equivalent NumPy code). Shapes of
results: op_plugin/ops/opapi/MoeInitRoutingV2KernelNpuOpApi.cpp, MoeReRoutingOpApi.cpp,
MoeFinalizeRoutingV2KernelNpuOpApi.cpp. What the device leaves unwritten is 0 here.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError

_NO_QUANT, _STATIC, _DYNAMIC = -1, 0, 1
_CUMULATIVE, _COUNT, _KEY_VALUE = 0, 1, 2


@kernel("npu::npu_moe_compute_expert_tokens")
def npu_moe_compute_expert_tokens(sorted_expert_for_source_row: Tensor, num_expert: int) -> Tensor:
    """How many of the sorted rows belong to the experts 0 … i, for each expert i."""
    experts = torch.arange(num_expert, dtype=sorted_expert_for_source_row.dtype)
    found = torch.searchsorted(sorted_expert_for_source_row.contiguous(), experts, right=True)
    return found.to(sorted_expert_for_source_row.dtype)


@kernel("npu::npu_moe_init_routing")
def npu_moe_init_routing(
    x: Tensor, row_idx: Tensor, expert_idx: Tensor, active_num: int
) -> tuple[Tensor, Tensor, Tensor]:
    """(rows of x [T, H] in the order of their experts, where each choice went, the sorted experts); `row_idx` [T, k]
    numbers the choices column by column.
    """
    count, choices = expert_idx.shape
    experts, order = expert_idx.flatten().sort(stable=True)
    source = row_idx.flatten()[order].long()
    places = torch.empty_like(source).index_copy_(0, source, torch.arange(source.numel()))
    kept = source[: min(active_num, count) * choices] % count
    return x[kept], places.to(torch.int32), experts


@kernel("npu::npu_moe_init_routing_v2")
def npu_moe_init_routing_v2(
    x: Tensor,
    expert_idx: Tensor,
    *,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    active_num: int = -1,
    expert_capacity: int = -1,
    expert_num: int = -1,
    drop_pad_mode: int = 0,
    expert_tokens_num_type: int = _CUMULATIVE,
    expert_tokens_num_flag: bool = False,
    quant_mode: int = _NO_QUANT,
    active_expert_range: Sequence[int] = (),
    row_idx_type: int = 0,
    x_dtype: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(rows of x by expert, place of each choice or choice of each place, tokens of each expert, scale of each row).

    drop_pad_mode 1 gives every expert exactly `expert_capacity` rows: [E, capacity, H].
    """
    operator = "npu::npu_moe_init_routing_v2"
    if quant_mode not in (_NO_QUANT, _STATIC, _DYNAMIC) or x_dtype is not None:
        raise NoReferenceError(operator, f"quant_mode {quant_mode}, x_dtype {x_dtype}")
    if x.dim() != 2 or expert_idx.dim() != 2:
        raise RuntimeError(f"The x and expert_idx should be 2-Dimension, current are {x.dim()} and {expert_idx.dim()}.")
    start, end = active_expert_range or (0, expert_num)
    if not x.size(0):
        shape = (expert_num, 2) if expert_tokens_num_type == _KEY_VALUE else (end - start,)
        dtype = x.dtype if quant_mode == _NO_QUANT else torch.int8
        indices = torch.zeros(0, dtype=torch.int32)
        return x.to(dtype), indices, torch.zeros(shape, dtype=torch.int64), torch.zeros(0)
    experts, order = _active_experts(expert_idx, start, end)
    total, choices = int(((experts >= start) & (experts < end)).sum()), expert_idx.size(1)
    counts = torch.bincount(experts[:total] - start, minlength=end - start)
    shown = _token_counts(counts, start, expert_tokens_num_type, expert_num)
    if not expert_tokens_num_flag:
        shown = torch.zeros_like(shown)
    if drop_pad_mode == 0:
        rows = x.size(0) * choices if active_num <= 0 else min(active_num, x.size(0) * choices)
        choice = torch.full((rows,), -1)
        choice[: min(rows, total)] = order[: min(rows, total)]
        expert = torch.zeros(rows, dtype=torch.long)
        expert[: min(rows, total)] = experts[: min(rows, total)] - start
        places = _inverse(order[:total], x.size(0) * choices)
    else:
        choice = _padded(order, counts, expert_capacity)
        expert = torch.arange(end - start).repeat_interleave(expert_capacity)
        places = _inverse(choice, x.size(0) * choices)
    filled = choice >= 0
    source = choice.clamp(min=0) // choices
    values = x[source].masked_fill(~filled.unsqueeze(-1), 0)
    expanded, scales = _quantised(values, scale, offset, quant_mode, source, expert)
    if drop_pad_mode == 1:
        expanded = expanded.view(end - start, expert_capacity, -1)
    indices = order if row_idx_type == 1 else places
    return expanded, indices.to(torch.int32), shown, scales.masked_fill(~filled, 0)


def _active_experts(expert_idx: Tensor, start: int, end: int) -> tuple[Tensor, Tensor]:
    """(sorted experts, their choices); experts before the range go to the end."""
    flat = expert_idx.flatten().long()
    experts, order = torch.where(flat < start, torch.iinfo(torch.int32).max, flat).sort(stable=True)
    return experts, order


def _token_counts(counts: Tensor, start: int, kind: int, experts: int) -> Tensor:
    if kind == _CUMULATIVE:
        return counts.cumsum(0)
    if kind == _COUNT:
        return counts
    used = counts.nonzero().squeeze(-1)
    pairs = counts.new_zeros(experts, 2)
    pairs[: used.numel()] = torch.stack([used + start, counts[used]], dim=1)
    return pairs


def _inverse(choice: Tensor, choices: int) -> Tensor:
    """The place of each choice, -1 for those without; `choice` of a place may be -1."""
    places = torch.full((choices,), -1)
    filled = choice >= 0
    places[choice[filled]] = torch.arange(choice.numel())[filled]
    return places


def _padded(order: Tensor, counts: Tensor, capacity: int) -> Tensor:
    """The choice of each of the capacity places of each expert, -1 for a free place."""
    choice = torch.full((counts.numel(), capacity), -1)
    for expert, part in enumerate(order[: int(counts.sum())].split(counts.tolist())):
        choice[expert, : min(capacity, part.numel())] = part[:capacity]
    return choice.flatten()


def _quantised(
    values: Tensor, scale: Tensor | None, offset: Tensor | None, mode: int, source: Tensor, expert: Tensor
) -> tuple[Tensor, Tensor]:
    """(rows, float32 scale of each row) for rows [R, H] that come from token `source` and go to `expert`."""
    unscaled = torch.zeros(values.size(0))
    if mode == _NO_QUANT:
        return values, unscaled if scale is None else scale.float()[source]
    if mode == _STATIC:
        if scale is None or offset is None:
            raise RuntimeError("npu_moe_init_routing_v2: quant_mode 0 needs scale and offset")
        shifted = values.half() * scale.half()[0] + offset.half()[0]
        return shifted.round().clamp(-128, 127).to(torch.int8), unscaled
    wide_values = values.float()
    if scale is not None:
        wide_values = wide_values * (scale if scale.size(0) == 1 else scale[expert])
    largest = wide_values.abs().amax(dim=-1) / 127
    rounded = (wide_values / largest.masked_fill(largest == 0, 1).unsqueeze(-1)).round()
    return rounded.to(torch.int8), largest


@kernel("npu::npu_moe_re_routing")
def npu_moe_re_routing(
    tokens: Tensor,
    expert_token_num_per_rank: Tensor,
    *,
    per_token_scales: Tensor | None = None,
    expert_token_num_type: int = _COUNT,
    idx_type: int = 0,
    tokens_dtype: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens [A, H] that lie rank by rank, laid expert by expert: (tokens, scales, their old places, counts [E])."""
    operator = "npu::npu_moe_re_routing"
    if expert_token_num_type != _COUNT or idx_type != 0 or tokens_dtype is not None:
        raise NoReferenceError(operator, "expert_token_num_type 0, idx_type 1 or tokens_dtype")
    counts = expert_token_num_per_rank.long()
    ranks, experts = counts.shape
    starts = (counts.flatten().cumsum(0) - counts.flatten()).view(ranks, experts)
    parts = [torch.arange(int(counts[r, e])) + int(starts[r, e]) for e in range(experts) for r in range(ranks)]
    source = torch.cat(parts)
    if source.numel() != tokens.size(0):
        raise RuntimeError(f"npu_moe_re_routing: {source.numel()} tokens are counted, {tokens.size(0)} are given")
    scales = torch.zeros(tokens.size(0)) if per_token_scales is None else per_token_scales[source]
    totals = counts.sum(dim=0).to(expert_token_num_per_rank.dtype)
    return tokens[source], scales, source.to(torch.int32), totals


@kernel("npu::npu_moe_finalize_routing")
def npu_moe_finalize_routing(
    expanded_permuted_rows: Tensor,
    skip1: Tensor | None,
    skip2: Tensor | None,
    bias: Tensor | None,
    scales: Tensor | None,
    expanded_src_to_dst_row: Tensor,
    export_for_source_row: Tensor | None,
    drop_pad_mode: int | None = 0,
    k: int | None = 1,
) -> Tensor:
    """skip1 + skip2 + Σₖ scales·(row + bias of its expert) [T, H].

    drop_pad_mode 0 and 1 number the k·T places column by column, 2 and 3 row by row; with 1 and 3 the rows are
    [E, C, H] and a place of -1 stands for a dropped row.
    """
    rows = wide(expanded_permuted_rows.reshape(-1, expanded_permuted_rows.size(-1)))
    choices = (k or 1) if scales is None else scales.size(1)
    places = expanded_src_to_dst_row.long()
    places = places.view(-1, choices) if drop_pad_mode in (2, 3) else places.view(choices, -1).T
    found = rows[places.clamp(min=0)].masked_fill((places < 0).unsqueeze(-1), 0)
    if bias is not None:
        if export_for_source_row is None:
            raise RuntimeError("npu_moe_finalize_routing: bias needs expert_for_source_row")
        found = found + wide(bias)[export_for_source_row.long()]
    if scales is not None:
        found = found * wide(scales).unsqueeze(-1)
    total = found.sum(dim=1)
    for skip in (skip1, skip2):
        if skip is not None:
            total = total + wide(skip)
    return total.to(expanded_permuted_rows.dtype)
