"""The functions of Apex's ``amp_C`` with torch's own operators over lists, on any device.

Each takes ``(chunk_size, flag, tensor_lists, …)`` as ``multi_tensor_applier`` hands them on; the chunk size means
nothing here. Arithmetic is float32, results are stored in each tensor's dtype. Source of the formulas and of the order
of the arguments: NVIDIA/apex, documents of its optimizers and csrc/amp_C_frontend.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Lists = Sequence[Sequence[Tensor]]


def _floats(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same tensors, those of lower precision as float32 copies."""
    return [tensor if tensor.dtype is torch.float64 else tensor.float() for tensor in tensors]


def _store(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    for tensor, value in zip(tensors, values, strict=True):
        if tensor is not value:
            tensor.copy_(value)


def _raise_flag(flag: Tensor, tensors: Sequence[Tensor]) -> None:
    """``flag`` becomes 1 where a number is not finite; nothing is read on the host."""
    for tensor in tensors:
        flag.copy_(torch.maximum(flag, (~torch.isfinite(tensor).all()).to(flag)))


@torch.no_grad()
def multi_tensor_scale(_chunk: int, flag: Tensor, lists: Lists, scale: float | Tensor) -> None:
    """[sources, results]: result = source · scale.

    In place where a result is its source, as gradients are clipped: a copy of all of them would set the memory's peak.
    """
    sources, results = lists
    _raise_flag(flag, sources)
    pairs = list(zip(sources, results, strict=True))
    if all(one.dtype is torch.float32 and one.data_ptr() == other.data_ptr() for one, other in pairs):
        torch._foreach_mul_(results, scale)
        return
    _store(results, torch._foreach_mul(_floats(sources), scale))


@torch.no_grad()
def multi_tensor_axpby(_chunk: int, flag: Tensor, lists: Lists, a: float, b: float, checked: int = -1) -> None:
    """[x, y, results]: result = a·x + b·y; ``checked`` is the argument sought for Inf and NaN, -1 for both."""
    x, y, results = lists
    _raise_flag(flag, [*x, *y] if checked < 0 else lists[checked])
    _store(results, torch._foreach_add(torch._foreach_mul(_floats(x), a), torch._foreach_mul(_floats(y), b)))


@torch.no_grad()
def multi_tensor_l2norm(
    _chunk: int,
    flag: Tensor,  # noqa: ARG001 - the kernel's argument
    lists: Lists,
    per_tensor: bool = False,
) -> tuple[Tensor, Tensor]:
    """[tensors]: the norm of all numbers together, of shape [1], and those of each tensor, [] unless wanted."""
    norms = torch.stack(torch._foreach_norm(_floats(lists[0]), 2))
    return norms.norm().reshape(1), norms if per_tensor else norms.new_empty(0)


@torch.no_grad()
def multi_tensor_sgd(
    _chunk: int,
    flag: Tensor,  # noqa: ARG001
    lists: Lists,
    weight_decay: float,
    momentum: float,
    dampening: float,
    lr: float,
    nesterov: bool,
    first_run: bool,
    decay_after_momentum: bool,
    scale: float = 1.0,
) -> None:
    """[gradients, parameters, momentum buffers] and, as a fourth list, copies of the parameters in lower precision."""
    gradients, parameters, buffers, *copies = lists
    update, values = torch._foreach_mul(_floats(gradients), scale), _floats(parameters)
    if weight_decay and not decay_after_momentum:
        torch._foreach_add_(update, values, alpha=weight_decay)
    if momentum:
        moving = _floats(buffers)
        torch._foreach_mul_(moving, 0.0 if first_run else momentum)
        torch._foreach_add_(moving, update, alpha=1.0 if first_run else 1.0 - dampening)
        update = torch._foreach_add(update, moving, alpha=momentum) if nesterov else [each.clone() for each in moving]
        _store(buffers, moving)
    if weight_decay and decay_after_momentum:
        torch._foreach_add_(update, values, alpha=weight_decay)
    torch._foreach_add_(values, update, alpha=-lr)
    _store(parameters, values)
    for of_lower_precision in copies:
        _store(of_lower_precision, values)


def _moments(
    gradients: list[Tensor], lists: Lists, betas: tuple[float, float], share: float
) -> tuple[list[Tensor], list[Tensor]]:
    """The running averages of Adam's kind after these gradients, stored: m = β₁m + share·g, v = β₂v + (1-β₂)g²."""
    _, _, first, second = lists
    averages, squares = _floats(first), _floats(second)
    torch._foreach_mul_(averages, betas[0])
    torch._foreach_add_(averages, gradients, alpha=share)
    torch._foreach_mul_(squares, betas[1])
    torch._foreach_addcmul_(squares, gradients, gradients, 1.0 - betas[1])
    _store(first, averages)
    _store(second, squares)
    return averages, squares


def _corrections(betas: tuple[float, float], step: Any, bias_correction: int) -> tuple[Any, Any]:
    return (1 - betas[0] ** step, 1 - betas[1] ** step) if bias_correction else (1.0, 1.0)


def _adam_update(averages: list[Tensor], squares: list[Tensor], corrections: tuple[Any, Any], eps: float) -> Any:
    """(m / c₁) / (√(v / c₂) + ε)"""
    denominators = torch._foreach_sqrt(torch._foreach_div(squares, corrections[1]))
    torch._foreach_add_(denominators, eps)
    return torch._foreach_div(torch._foreach_div(averages, corrections[0]), denominators)


@torch.no_grad()
def multi_tensor_adam(
    _chunk: int,
    flag: Tensor,  # noqa: ARG001
    lists: Lists,
    lr: Any,
    beta1: float,
    beta2: float,
    eps: float,
    step: Any,
    mode: int,
    bias_correction: int,
    weight_decay: float,
) -> None:
    """[gradients, parameters, averages, averages of squares]; mode 1 decays weights as AdamW does, 0 as Adam does."""
    gradients, parameters = _floats(lists[0]), _floats(lists[1])
    if weight_decay and not mode:
        gradients = torch._foreach_add(gradients, parameters, alpha=weight_decay)
    averages, squares = _moments(gradients, lists, (beta1, beta2), 1.0 - beta1)
    update = _adam_update(averages, squares, _corrections((beta1, beta2), step, bias_correction), eps)
    if weight_decay and mode:
        torch._foreach_add_(update, parameters, alpha=weight_decay)
    torch._foreach_mul_(update, lr)
    _store(lists[1], torch._foreach_sub(parameters, update))


@torch.no_grad()
def multi_tensor_adagrad(
    _chunk: int,
    flag: Tensor,  # noqa: ARG001
    lists: Lists,
    lr: float,
    eps: float,
    mode: int,
    weight_decay: float,
) -> None:
    """[gradients, parameters, sums of squares]; mode 1 decays weights as AdamW does, 0 adds them to the gradients."""
    gradients, parameters, sums = _floats(lists[0]), _floats(lists[1]), _floats(lists[2])
    if weight_decay and not mode:
        gradients = torch._foreach_add(gradients, parameters, alpha=weight_decay)
    torch._foreach_addcmul_(sums, gradients, gradients)
    denominators = torch._foreach_sqrt(sums)
    torch._foreach_add_(denominators, eps)
    update = torch._foreach_div(gradients, denominators)
    if weight_decay and mode:
        torch._foreach_add_(update, parameters, alpha=weight_decay)
    _store(lists[2], sums)
    _store(lists[1], torch._foreach_add(parameters, update, alpha=-lr))


@torch.no_grad()
def multi_tensor_lamb(
    _chunk: int,
    flag: Tensor,  # noqa: ARG001
    lists: Lists,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
    bias_correction: int,
    weight_decay: float,
    grad_averaging: int,
    mode: int,
    global_grad_norm: Tensor,
    max_grad_norm: float,
    use_nvlamb: bool = False,
) -> None:
    """[gradients, parameters, averages, averages of squares]; the update is Adam's, scaled by ‖p‖ / ‖update‖.

    Gradients are first divided by ``global_grad_norm / max_grad_norm`` where that is more than 1. Without weight decay
    a parameter keeps the learning rate, unless ``use_nvlamb``.
    """
    parameters = _floats(lists[1])
    divisor = (global_grad_norm.float() / max_grad_norm).clamp(min=1.0).reshape(()) if max_grad_norm > 0 else 1.0
    gradients = torch._foreach_div(_floats(lists[0]), divisor)
    if weight_decay and not mode:
        torch._foreach_add_(gradients, parameters, alpha=weight_decay)
    averages, squares = _moments(gradients, lists, (beta1, beta2), 1.0 - beta1 if grad_averaging else 1.0)
    update = _adam_update(averages, squares, _corrections((beta1, beta2), step, bias_correction), eps)
    if weight_decay and mode:
        torch._foreach_add_(update, parameters, alpha=weight_decay)
    if use_nvlamb or weight_decay:
        for change, parameter in zip(update, parameters, strict=True):
            length, size = change.norm(), parameter.norm()
            change.mul_(torch.where((length != 0) & (size != 0), size / length, 1.0))
    _store(lists[1], torch._foreach_add(parameters, update, alpha=-lr))


@torch.no_grad()
def multi_tensor_novograd(
    _chunk: int,
    flag: Tensor,  # noqa: ARG001
    lists: Lists,
    norms: Tensor,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    step: int,
    bias_correction: int,
    weight_decay: float,
    grad_averaging: int,
    moment_mode: int,
    norm_type: int,
) -> None:
    """[gradients, parameters, averages]; ``norms`` [tensors], which changes, holds each gradient's running norm.

    Moment mode 0 normalises gradients and decays weights before the average is taken, 1 afterwards. The norm is the
    Euclidean one for ``norm_type`` 2, the largest number for 0.
    """
    gradients, parameters, averages = _floats(lists[0]), _floats(lists[1]), _floats(lists[2])
    if norm_type == 2:
        found = torch.stack(torch._foreach_norm(gradients, 2))
        norms.copy_((beta2 * norms**2 + (1 - beta2) * found**2).sqrt())
    else:
        found = torch.stack([gradient.abs().max() for gradient in gradients])
        norms.copy_(beta2 * norms + (1 - beta2) * found)
    of_average, of_norm = _corrections((beta1, beta2), step, bias_correction)
    denominators = list((norms / of_norm**0.5 + eps).unbind())
    share = 1.0 - beta1 if grad_averaging else 1.0
    if moment_mode == 0:
        gradients = torch._foreach_div(gradients, denominators)
        torch._foreach_add_(gradients, parameters, alpha=weight_decay)
    torch._foreach_mul_(averages, beta1)
    torch._foreach_add_(averages, gradients, alpha=share)
    update = torch._foreach_div(averages, of_average)
    if moment_mode != 0:
        update = torch._foreach_div(update, denominators)
        torch._foreach_add_(update, parameters, alpha=weight_decay)
    _store(lists[2], averages)
    _store(lists[1], torch._foreach_add(parameters, update, alpha=-lr))
