"""Steps of optimizers. ``out`` is (parameter, first moment, second moment) before the step (op-plugin docs:
npu_apply_adam, npu_apply_adam_w, npu_bert_apply_adam; test_apply_adam.py, test_npu_apply_adam_w.py)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.findings import say
from npuport.precision.references.formulas import UncoveredError, formula


def _moments(grad: Tensor, out: Sequence[Tensor], beta1: float, beta2: float) -> tuple[Tensor, Tensor]:
    return out[1] * beta1 + grad * (1 - beta1), out[2] * beta2 + grad * grad * (1 - beta2)


@formula("npu.npu_apply_adam.out")
def apply_adam(
    beta1_power: float,
    beta2_power: float,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensor,
    use_locking: bool | None,
    use_nesterov: bool | None,
    *,
    out: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """``beta1_power`` is the power of this step."""
    m, v = _moments(grad, out, beta1, beta2)
    rate = lr * (1 - beta2_power) ** 0.5 / (1 - beta1_power)
    direction = m * beta1 + grad * (1 - beta1) if use_nesterov else m
    return out[0] - rate * direction / (v.sqrt() + epsilon), m, v


@formula("npu.npu_apply_adam_w.out")
def apply_adam_w(
    beta1_power: float,
    beta2_power: float,
    lr: float,
    weight_decay: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensor,
    max_grad_norm: Tensor | None,
    amsgrad: bool | None,
    maximize: bool | None,
    *,
    out: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """``beta1_power`` is the power of the step before; ``max_grad_norm`` the largest second moment with amsgrad."""
    m, v = _moments(-grad if maximize else grad, out, beta1, beta2)
    second = torch.maximum(max_grad_norm, v) if amsgrad and max_grad_norm is not None else v
    size = torch.sqrt(second / (1 - beta2_power * beta2)) + epsilon
    decayed = out[0] * (1 - lr * weight_decay)
    return decayed - lr / (1 - beta1_power * beta1) * m / size, m, v


@formula("npu.npu_bert_apply_adam.out")
def bert_apply_adam(
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensor,
    max_grad_norm: float,
    global_grad_norm: float,
    weight_decay: float,
    step_size: float | None = None,
    adam_mode: int = 0,
    *,
    out: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """Without correction of the moments' bias."""
    clips = max_grad_norm > 0 and global_grad_norm > 1
    if clips and adam_mode:
        raise UncoveredError(say("no reference formula for {argument}", argument="adam_mode=1, max_grad_norm"))
    m, v = _moments(grad / global_grad_norm if clips else grad, out, beta1, beta2)
    rate = step_size if adam_mode and step_size is not None else lr
    update = rate * m / (v.sqrt() + epsilon)
    return out[0] - update - (lr * weight_decay * out[0] if weight_decay > 0 else 0.0), m, v
