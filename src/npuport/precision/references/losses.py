"""Losses and their backward operators (op-plugin docs: npu_cross_entropy_loss, npu_softmax_cross_entropy_with_logits;
its derivatives.yaml). Reductions are 0 none, 1 mean, 2 sum (ATen/core/Reduction.h)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from npuport.precision.references.formulas import formula, gradients, refuse

_MEAN, _SUM = 1, 2


def _reduced(values: Tensor, reduction: int) -> Tensor:
    return values.mean() if reduction == _MEAN else values.sum() if reduction == _SUM else values


def _log_softmax(x: Tensor) -> Tensor:
    return x - torch.logsumexp(x, 1, keepdim=True)


def _kl_div(input: Tensor, target: Tensor, log_target: bool) -> Tensor:
    if log_target:
        return torch.exp(target) * (target - input)
    return torch.where(target > 0, target * (torch.log(target.clamp(min=0)) - input), 0.0)


@formula("npu.kl_div_backward")
def kl_div_backward(
    grad_output: Tensor, input: Tensor, target: Tensor, reduction: int = _MEAN, *, log_target: bool = False
) -> Tensor:
    return gradients(lambda x: _reduced(_kl_div(x, target, log_target), reduction), [input], grad_output)[0]


@formula("npu.kl_div_target_backward")
def kl_div_target_backward(
    grad_output: Tensor, input: Tensor, target: Tensor, reduction: int = _MEAN, *, log_target: bool = False
) -> Tensor:
    return gradients(lambda t: _reduced(_kl_div(input, t, log_target), reduction), [target], grad_output)[0]


@formula("npu.l1_loss_backward")
def l1_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: int) -> Tensor:
    signs = torch.sign(input - target)
    return signs * grad_output / (signs.numel() if reduction == _MEAN else 1)


@formula("npu.npu_binary_cross_entropy_with_logits_backward")
def binary_cross_entropy_with_logits_backward(
    grad_output: Tensor,
    input: Tensor,
    target: Tensor,
    weight_opt: Tensor | None,
    pos_weight_opt: Tensor | None,
    reduction: int,
) -> Tensor:
    rise = (1.0 if pos_weight_opt is None else pos_weight_opt) * target  # weight of -log(p)
    slope = torch.sigmoid(input) * (1 - target + rise) - rise
    slope = slope if weight_opt is None else slope * weight_opt
    return slope * grad_output / (slope.numel() if reduction == _MEAN else 1)


def _soft_cross_entropy(input: Tensor, labels: Tensor) -> Tensor:
    return -(labels * _log_softmax(input)).sum(1)


@formula("npu.npu_softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(input: Tensor, labels: Tensor) -> Tensor:
    return _soft_cross_entropy(input, labels)


@formula("npu.npu_softmax_cross_entropy_with_logits_backward")
def softmax_cross_entropy_with_logits_backward(grad: Tensor, input: Tensor, labels: Tensor) -> Tensor:
    return gradients(lambda x: _soft_cross_entropy(x, labels), [input], grad)[0]


def _cross_entropy(
    target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int, smoothing: float
) -> Callable[[Tensor], Tensor]:
    """The loss as a function of log probabilities [N, C]."""
    refuse("reduction", reduction, "none", "mean", "sum")

    def loss(log_prob: Tensor) -> Tensor:
        counts = (target != ignore_index).to(log_prob.dtype)
        chosen = torch.where(target == ignore_index, 0, target).long()
        weights = torch.ones(log_prob.size(1), dtype=log_prob.dtype) if weight is None else weight
        of_target = -log_prob.gather(1, chosen[:, None])[:, 0] * weights[chosen] * counts
        spread = -(log_prob * weights).sum(1) * counts
        if reduction != "none":
            total = (weights[chosen] * counts).sum() if reduction == "mean" else 1.0
            of_target, spread = of_target.sum() / total, spread.sum() / total
        return (1 - smoothing) * of_target + smoothing / log_prob.size(1) * spread

    return loss


@formula("npu.npu_cross_entropy_loss")
def cross_entropy_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[Tensor, ...]:
    """The results of the z-loss are empty."""
    refuse("return_zloss", return_zloss, False)
    refuse("lse_square_scale_for_zloss", lse_square_scale_for_zloss, 0.0)
    log_prob = _log_softmax(input)
    loss = _cross_entropy(target, weight, reduction, ignore_index, label_smoothing)(log_prob)
    return loss.reshape(-1), log_prob, input.new_empty(0), input.new_empty(0)


@formula("npu.npu_cross_entropy_loss_backward")
def cross_entropy_loss_backward(
    grad_loss: Tensor,
    log_prob: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    grad_zloss: Tensor | None = None,
    lse_for_zloss: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
) -> Tensor:
    """From the log probabilities g the gradient of the logits is g - softmax · Σ g."""
    refuse("lse_square_scale_for_zloss", lse_square_scale_for_zloss, 0.0)
    loss = _cross_entropy(target, weight, reduction, ignore_index, label_smoothing)
    of_log_prob = gradients(loss, [log_prob], grad_loss)[0]
    return of_log_prob - torch.exp(log_prob) * of_log_prob.sum(1, keepdim=True)
