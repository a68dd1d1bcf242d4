"""Optimizer steps. The classes of torch_npu.optim compose plain operators; these are the fused operators behind some
of them, and behind PyTorch's own with fused=True.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


@kernel("npu::npu_apply_adam.out")
def npu_apply_adam_out(
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
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of TensorFlow's ApplyAdam on out = (var, m, v), in place: lr·sqrt(1-β₂ᵗ)/(1-β₁ᵗ)·m/(sqrt(v)+ε), with βᵗ
    given as `beta_power`.

    Source: apply_adam_d of op-plugin's test/test_base_ops/test_apply_adam.py (its golden function).
    """
    var, m, v = out
    m.mul_(beta1).add_(grad, alpha=1 - beta1)
    v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    step = lr * _divided((1 - beta2_power) ** 0.5, 1 - beta1_power)
    moved = m * beta1 + grad * (1 - beta1) if use_nesterov else m
    var.addcdiv_(moved, v.sqrt().add_(epsilon), value=-step)
    return var, m, v


@kernel("npu::npu_apply_adam_w.out")
def npu_apply_adam_w_out(
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
) -> tuple[Tensor, Tensor, Tensor]:
    """One AdamW step on out = (var, m, v), in place; `beta_power` is β to the power of the steps *before* this one.

    Source: gen_apply_adam_w of op-plugin's test_npu_apply_adam_w.py.
    """
    if amsgrad and max_grad_norm is None:
        raise RuntimeError("if amsgrad is true, max_grad_norm input must be entered")
    var, m, v = out
    ascent = -grad if maximize else grad
    m.mul_(beta1).add_(ascent, alpha=1 - beta1)
    v.mul_(beta2).addcmul_(ascent, ascent, value=1 - beta2)
    second = torch.maximum(max_grad_norm, v) if amsgrad and max_grad_norm is not None else v
    denominator = (second / (1 - beta2_power * beta2)).sqrt_().add_(epsilon)
    var.mul_(1 - lr * weight_decay).addcdiv_(m, denominator, value=-_divided(lr, 1 - beta1_power * beta1))
    return var, m, v


@kernel("npu::npu_bert_apply_adam.out")
def npu_bert_apply_adam_out(
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
) -> tuple[Tensor, Tensor, Tensor]:
    """One Adam step without bias correction on out = (var, m, v), in place (torch_npu-npu_bert_apply_adam.md).

    Mode 1 steps by `step_size` where mode 0 steps by `lr`. A gradient whose norm exceeds 1 is divided by it if
    max_grad_norm is positive. Sources: apply_adam_v2 in CANN's TBE operators, ops-nn optim/apply_adam_v2/README.md.
    """
    clipped = max_grad_norm > 0 and global_grad_norm > 1
    if adam_mode and clipped:
        raise NoReferenceError("npu::npu_bert_apply_adam", "clipping in mode 1, on which CANN's documents disagree")
    var, m, v = out
    gradient = grad / global_grad_norm if clipped else grad
    m.mul_(beta1).add_(gradient, alpha=1 - beta1)
    v.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    step = lr if adam_mode == 0 or step_size is None else step_size
    update = m / v.sqrt().add_(epsilon) * step
    if weight_decay > 0:
        update += var * (lr * weight_decay)
    var.sub_(update)
    return var, m, v


def _divided(numerator: float, denominator: float) -> float:
    """IEEE division: the device gives inf or nan where Python raises."""
    return float(torch.tensor(numerator, dtype=torch.float64) / denominator)


@kernel("npu::npu_apply_adam", "npu::npu_apply_adam_w", "npu::npu_bert_apply_adam", lend=False)
def without_out(*_args: object, **_kwargs: object) -> NoReturn:
    """torch_npu itself refuses the variants without `out` (ApplyAdamKernelNpuOpApi.cpp, BertApplyAdamKernelNpu.cpp)."""
    raise RuntimeError(
        "npu_apply_adam, npu_apply_adam_w and npu_bert_apply_adam are not implemented for Tensor; pass out=(var, m, v)"
    )


@kernel("aten::_fused_adamw_")
def fused_adamw(
    parameters: Sequence[Tensor],
    *state: object,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    **settings: object,
) -> None:
    """The step of torch.optim.AdamW(fused=True), which takes no notice of a gradient scaler: scaled gradients stay
    scaled, and a step with Inf is made.

    Source: op-plugin's FusedAdamWKernelNpuOpApi.cpp; seen on the wheel of torch_npu 2.13.0, which hands both to nobody.
    """
    torch._fused_adamw_(parameters, *state, **settings)


@kernel("aten::_fused_sgd_", "aten::_fused_sgd_.tensor_lr")
def fused_sgd(parameters: Sequence[Tensor], *state: object, momentum: float, **settings: object) -> None:
    """The step of torch.optim.SGD(fused=True), which asks for momentum (op-plugin's FusedSgdKernelOpApi.cpp)."""
    if momentum <= 0:
        raise RuntimeError(f"momentum must be positive, but got {momentum:g}")
    torch._fused_sgd_(parameters, *state, momentum=momentum, **settings)


@kernel("npu::_amp_foreach_non_finite_check")
def amp_foreach_non_finite_check(scaled_grads: Sequence[Tensor]) -> bool:
    """Whether any gradient holds inf or nan (torch_npu/npu/amp/grad_scaler.py)."""
    return any(not bool(torch.isfinite(grad).all()) for grad in scaled_grads)
