"""Cross entropy over a vocabulary that is split between processes, fused with the projection onto it.

Pages: torch_npu-npu_fused_{linear_online_max_sum,cross_entropy_loss_with_max_sum,
linear_cross_entropy_loss_with_max_sum_backward}.md of Ascend/op-plugin. Between the first operator and the second the
processes reduce `logits_max` (and rescale the sums with it), `sum_exp_logits` and `predicted_logits`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError

_HIGHEST_BIT_FIRST = torch.arange(7, -1, -1, dtype=torch.uint8)


def _packed(mask: Tensor) -> Tensor:
    """uint8 [⌈n / 8⌉] of bool [n], first element in the highest bit, filled up with ones."""
    bits = torch.nn.functional.pad(mask.to(torch.uint8), (0, -mask.numel() % 8), value=1).view(-1, 8)
    return (bits << _HIGHEST_BIT_FIRST).sum(dim=1, dtype=torch.uint8)


def _unpacked(packed: Tensor, count: int) -> Tensor:
    return ((packed[:, None] >> _HIGHEST_BIT_FIRST) & 1).flatten()[:count].bool()


@kernel("npu::npu_fused_linear_online_max_sum")
def npu_fused_linear_online_max_sum(
    input: Tensor,
    weight: Tensor,
    target: Tensor,
    vocab_start_index: int,
    vocab_end_index: int,
    return_logits: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """For input [n, H], weight [V, H] and target [n]: (row maxima of the logits, sums of exp(logit - maximum), logit of
    the target - maximum; all float32 [n]), the packed mask of targets outside [start, end], targets counted from the
    start (0 outside), and the logits [n, V] or None.
    """
    logits = input.float() @ weight.float().t()
    highest = logits.amax(dim=1)
    shifted = logits - highest[:, None]
    outside = (target < vocab_start_index) | (target > vocab_end_index)
    local = torch.where(outside, 0, target - vocab_start_index)
    predicted = shifted.gather(1, local.long()[:, None])[:, 0].masked_fill(outside, 0)
    kept = logits.to(input.dtype) if return_logits else None
    return highest, shifted.exp().sum(dim=1), predicted, _packed(outside), local.to(target.dtype), kept


def _require_no_smoothing(operator: str, label_smoothing: float | None) -> None:
    if label_smoothing:
        raise NoReferenceError(operator, "label_smoothing, documented as unsupported")


def _softmax(logits: Tensor, highest: Tensor, sums: Tensor) -> Tensor:
    return (logits.float() - highest[:, None]).exp() / sums[:, None]


@kernel("npu::npu_fused_cross_entropy_loss_with_max_sum")
def npu_fused_cross_entropy_loss_with_max_sum(
    logits_max: Tensor,
    sum_exp_logits: Tensor,
    predicted_logits: Tensor,
    *,
    label_smoothing: float | None = 0.0,
    input: Tensor | None = None,
    weight: Tensor | None = None,
    vocab_parallel_logits: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """(loss [n], softmax [n, V] of the logits, or None without them)."""
    operator = "npu::npu_fused_cross_entropy_loss_with_max_sum"
    _require_no_smoothing(operator, label_smoothing)
    if input is not None or weight is not None:
        raise NoReferenceError(operator, "input and weight, documented as unsupported")
    loss = sum_exp_logits.log() - predicted_logits
    if vocab_parallel_logits is None:
        return loss, None
    return loss, _softmax(vocab_parallel_logits, logits_max, sum_exp_logits)


@kernel("npu::npu_fused_linear_cross_entropy_loss_with_max_sum_backward")
def npu_fused_linear_cross_entropy_loss_with_max_sum_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    target_mask: Tensor,
    masked_target: Tensor,
    label_smoothing: float = 0.0,
    logits_max: Tensor | None = None,
    sum_exp_logits: Tensor | None = None,
    softmax: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(dinput [n, H], dweight [V, H]) from the softmax, or from the maxima and sums that give it again."""
    operator = "npu::npu_fused_linear_cross_entropy_loss_with_max_sum_backward"
    _require_no_smoothing(operator, label_smoothing)
    if softmax is None:
        if logits_max is None or sum_exp_logits is None:
            raise RuntimeError(f"{operator}: without softmax, logits_max and sum_exp_logits are needed")
        softmax = _softmax(input.float() @ weight.float().t(), logits_max, sum_exp_logits)
    inside = ~_unpacked(target_mask, grad.numel())
    chosen = torch.zeros_like(softmax).scatter_(1, masked_target.long()[:, None], inside.float()[:, None])
    of_logits = (softmax - chosen) * grad[:, None]
    return (of_logits @ weight.float()).to(input.dtype), (of_logits.t() @ input.float()).to(weight.dtype)
