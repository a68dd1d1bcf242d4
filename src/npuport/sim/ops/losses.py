"""Losses under torch_npu's own names, and the backward operators that its derivatives call.

Reductions: 0 none, 1 mean, 2 sum (ATen/core/Reduction.h). Derivatives: Ascend/op-plugin
op_plugin/config/derivatives.yaml.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError

_MEAN = 1


def _kl_div(input: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    loss: Tensor = torch.ops.aten.kl_div(input, target, reduction, log_target=log_target)
    return loss


@kernel("npu::kl_div_backward")
def kl_div_backward(
    grad_output: Tensor, input: Tensor, target: Tensor, reduction: int = _MEAN, *, log_target: bool = False
) -> Tensor | None:
    return vector_jacobian(lambda x: _kl_div(x, target, reduction, log_target), (input,), (grad_output,))[0]


@kernel("npu::kl_div_target_backward")
def kl_div_target_backward(
    grad_output: Tensor, input: Tensor, target: Tensor, reduction: int = _MEAN, *, log_target: bool = False
) -> Tensor | None:
    return vector_jacobian(lambda t: _kl_div(input, t, reduction, log_target), (target,), (grad_output,))[0]


@kernel("npu::l1_loss_backward")
def l1_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: int) -> Tensor:
    """sgn(input - target)·grad, divided by the number of elements for the mean; in the broadcast shape, as the
    schema's yaml says.
    """
    sign = torch.sgn(input - target)
    return sign * (grad_output / sign.numel() if reduction == _MEAN else grad_output)


@kernel("npu::npu_binary_cross_entropy_with_logits_backward")
def binary_cross_entropy_with_logits_backward(
    grad_output: Tensor,
    input: Tensor,
    target: Tensor,
    weight_opt: Tensor | None,
    pos_weight_opt: Tensor | None,
    reduction: int,
) -> Tensor | None:
    def loss(logits: Tensor) -> Tensor:
        found: Tensor = torch.ops.aten.binary_cross_entropy_with_logits(
            logits, target, weight_opt, pos_weight_opt, reduction
        )
        return found

    return vector_jacobian(loss, (input,), (grad_output,))[0]


@kernel("npu::npu_softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(input: Tensor, labels: Tensor) -> Tensor:
    """-Σ labels·log_softmax(input) over dimension 1 (torch_npu-npu_softmax_cross_entropy_with_logits.md)."""
    return -(labels * functional.log_softmax(input, dim=1)).sum(dim=1)


@kernel("npu::npu_softmax_cross_entropy_with_logits_backward")
def softmax_cross_entropy_with_logits_backward(grad: Tensor, input: Tensor, labels: Tensor) -> Tensor | None:
    return vector_jacobian(lambda x: softmax_cross_entropy_with_logits(x, labels), (input,), (grad,))[0]


@kernel("npu::npu_cross_entropy_loss")
def npu_cross_entropy_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(loss, log_prob, zloss, lse_for_zloss) of torch_npu-npu_cross_entropy_loss.md; loss is [1], or [N] without
    reduction.

    The z-loss is documented as unsupported: its results are empty, and asking for it raises NoReferenceError.
    """
    if return_zloss or lse_square_scale_for_zloss:
        raise NoReferenceError("npu::npu_cross_entropy_loss", "z-loss, documented as unsupported")
    log_prob = functional.log_softmax(input.float(), dim=1)
    loss = _smoothed_nll(log_prob, target, weight, reduction, ignore_index, label_smoothing).to(input.dtype)
    empty = input.new_empty(0)
    return loss if reduction == "none" else loss.reshape(1), log_prob.to(input.dtype), empty, empty.clone()


def _smoothed_nll(
    log_prob: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int, label_smoothing: float
) -> Tensor:
    """cross_entropy of log probabilities: log_softmax leaves them as they are, so PyTorch's own function serves."""
    return functional.cross_entropy(
        log_prob, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


@kernel("npu::npu_cross_entropy_loss_backward")
def npu_cross_entropy_loss_backward(
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
) -> Tensor | None:
    """Gradient for the logits, from the saved log probabilities (cross_entropy is the same function of either)."""

    def loss(logits: Tensor) -> Tensor:
        found = _smoothed_nll(logits, target, weight, reduction, ignore_index, label_smoothing)
        return found if reduction == "none" else found.reshape(1)

    found = vector_jacobian(loss, (log_prob.float(),), (grad_loss.float(),))[0]
    return None if found is None else found.to(log_prob.dtype)
