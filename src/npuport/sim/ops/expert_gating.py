"""Mixture of experts: which experts a token goes to, and with which weight.

Meaning: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_moe_gating_top_k.md and
torch_npu-npu_moe_gating_top_k_softmax.md (with the equivalent NumPy code), torch_npu-npu_moe_update_expert.md, CANN's
moe_gating_top_k_softmax_v2 (hicann/ops-transformer moe/), the golden functions of op-plugin's tests. Argument checks:
op_plugin/ops/opapi/MoeGating*.cpp.
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError

_SOFTMAX, _SIGMOID = 0, 1


def _largest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of the last dimension and their indices; of equals the first comes first."""
    values, indices = scores.sort(dim=-1, descending=True, stable=True)
    return values[..., :k].contiguous(), indices[..., :k]


def _mark_finished(experts: Tensor, finished: Tensor | None, count: int) -> Tensor:
    if finished is not None:
        experts = torch.where(finished.unsqueeze(-1), count, experts)
    return experts.to(torch.int32)


@kernel("npu::npu_moe_gating_top_k_softmax")
def npu_moe_gating_top_k_softmax(
    x: Tensor, finished: Tensor | None = None, k: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """(the k largest probabilities, their experts int32, row index int32); finished rows get the expert number E."""
    _check_logits(x, k)
    values, experts = _largest(torch.softmax(wide(x), dim=-1), k)
    rows = torch.arange(values.numel(), dtype=torch.int32).view(k, -1).t().reshape(values.shape)
    return values.to(x.dtype), _mark_finished(experts, finished, x.size(-1)), rows


@kernel("npu::npu_moe_gating_top_k_softmax_v2")
def npu_moe_gating_top_k_softmax_v2(
    x: Tensor,
    *,
    k: int = 1,
    finished: Tensor | None = None,
    renorm: int | None = 0,
    output_softmax: bool | None = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """(weights, experts int32, the softmax float32 or nothing). `renorm` 0 takes the largest of the softmax, 1 the
    softmax of the largest.
    """
    _check_logits(x, k)
    if renorm not in (None, 0, 1):
        raise RuntimeError(f"renorm must be 0 or 1, but got: {renorm}")
    probabilities = torch.softmax(wide(x), dim=-1)
    if renorm:
        values, experts = _largest(wide(x), k)
        values = torch.softmax(values, dim=-1)
    else:
        values, experts = _largest(probabilities, k)
    whole = probabilities if output_softmax and not renorm else probabilities.new_empty(0)
    return values.to(x.dtype), _mark_finished(experts, finished, x.size(-1)), whole


def _check_logits(x: Tensor, k: int) -> None:
    if x.dim() not in (2, 3):
        raise RuntimeError("The x's shape should be 2D or 3D")
    if not 0 <= k <= x.size(-1):
        raise RuntimeError(f"The k's shape should be in [0, {x.size(-1)}]")


@kernel("npu::npu_moe_gating_top_k")
def npu_moe_gating_top_k(
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
) -> tuple[Tensor, Tensor, Tensor]:
    """(weights in the dtype of x, experts int32, the softmax or sigmoid of x float32).

    The bias and the best `k_group` of `group_count` groups decide which experts are taken, not their weights. Without
    `out_flag` the third result, which the device does not write then, is NaN.
    """
    operator = "npu::npu_moe_gating_top_k"
    if input_ids is not None or tid2eid is not None:
        raise NoReferenceError(operator, "input_ids and tid2eid")
    if renorm != 0:
        raise NoReferenceError(operator, "renorm other than 0, documented as unsupported")
    if x.dim() != 2:
        raise RuntimeError("The x should be 2D")
    if bias is not None and bias.shape != x.shape[1:]:
        raise RuntimeError("The bias first dim should be same as x second dim")
    if x.size(1) % group_count or not 1 <= k_group <= group_count or k > x.size(1) // group_count * k_group:
        raise RuntimeError(
            f"npu_moe_gating_top_k: {x.size(1)} experts in {group_count} groups, of which {k_group} count, "
            f"cannot give {k} experts"
        )
    normal = torch.softmax(wide(x), dim=-1) if norm_type == _SOFTMAX else torch.sigmoid(wide(x))
    score = normal if bias is None else normal + wide(bias)
    grouped = score.view(x.size(0), group_count, -1)
    of_group = grouped.amax(-1) if group_select_mode == 0 else grouped.topk(2, dim=-1).values.sum(-1)
    _, best = _largest(of_group, k_group)
    passed = torch.zeros_like(of_group, dtype=torch.bool).scatter_(1, best, True)
    _, experts = _largest(grouped.masked_fill(~passed.unsqueeze(-1), float("-inf")).flatten(1), k)
    weights = normal.gather(1, experts)
    if norm_type == _SIGMOID:
        weights = weights / (weights.sum(dim=-1, keepdim=True) + eps)
    weights = weights * routed_scaling_factor
    shown = normal if out_flag else torch.full_like(normal, float("nan"))
    return weights.to(x.dtype), experts.to(torch.int32), shown


@kernel("npu::npu_moe_gating_top_k_backward")
def npu_moe_gating_top_k_backward(
    x_norm: Tensor,
    grad_y: Tensor,
    expertIdx: Tensor,
    *,
    renorm: int = 0,
    norm_type: int = _SOFTMAX,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> Tensor:
    """The gradient of x, in the dtype of grad_y."""
    if torch.isnan(x_norm).all() and x_norm.numel():
        raise RuntimeError("npu_moe_gating_top_k: a gradient needs the third result; call it with out_flag=True")
    normal, experts = wide(x_norm), expertIdx.long()
    grad = wide(grad_y) * routed_scaling_factor
    if norm_type == _SIGMOID:
        chosen = normal.gather(1, experts)
        total = chosen.sum(dim=-1, keepdim=True) + eps
        grad = (grad - (grad * chosen / total).sum(dim=-1, keepdim=True)) / total
    spread = torch.zeros_like(normal).scatter_add_(1, experts, grad)
    if norm_type == _SIGMOID:
        return (spread * normal * (1 - normal)).to(grad_y.dtype)
    return (normal * (spread - (spread * normal).sum(dim=-1, keepdim=True))).to(grad_y.dtype)


@kernel("npu::npu_moe_update_expert")
def npu_moe_update_expert(
    expert_ids: Tensor,
    eplb_table: Tensor,
    *,
    expert_scales: Tensor | None = None,
    pruning_threshold: Tensor | None = None,
    active_mask: Tensor | None = None,
    local_rank_id: int = -1,
    world_size: int = -1,
    balance_mode: int = 0,
) -> tuple[Tensor, Tensor]:
    """(physical experts [BS, K], mask [BS, K] of the choices that survive pruning).

    Of the instances of an expert, mode 0 takes the one of this rank's part of the world, mode 1 takes them by turns.
    """
    rows = eplb_table[expert_ids.long()]
    instances = rows[..., 0].long()
    if balance_mode == 0:
        place = local_rank_id // (-(-world_size // instances)) + 1
    else:
        place = torch.arange(expert_ids.size(0)).unsqueeze(-1) % instances + 1
    place = torch.where(instances == 1, 1, place)
    found = rows.gather(-1, place.unsqueeze(-1)).squeeze(-1).to(expert_ids.dtype)
    if expert_scales is None or pruning_threshold is None:
        return found, torch.ones_like(found, dtype=torch.bool)
    scales = wide(expert_scales)
    mask = scales.sum(dim=-1, keepdim=True) * wide(pruning_threshold).view(1, -1) < scales
    return found, mask if active_mask is None else mask & active_mask.unsqueeze(-1)
