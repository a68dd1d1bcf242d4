"""Norms (op-plugin docs: npu_rms_norm, npu_layer_norm_eval, npu_deep_norm, npu_group_norm_silu, npu_group_norm_swish;
its tests test_npu_add_rms_norm*.py, test_npu_gemma_rms_norm.py; CANN's aclnnAddLayerNorm).

A sum of two tensors may be rounded before it is normalised (the tests do so), or not. Backward formulas use the mean
and the reciprocal deviation that the call was given, as the kernels do.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.precision.references.formulas import formula, gradients, wanted


def _dims(number: int) -> list[int]:
    return list(range(-number, 0))


def _rms(x: Tensor, gamma: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    rstd = 1 / torch.sqrt((x * x).mean(_dims(gamma.dim()), keepdim=True) + epsilon)
    return x * rstd * gamma, rstd


@formula("npu.npu_rms_norm")
def rms_norm(input: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    return _rms(input, gamma, epsilon)


@formula("npu.npu_rms_norm_backward")
def rms_norm_backward(dy: Tensor, input: Tensor, gamma: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    dims = _dims(gamma.dim())
    rstd = rstd.reshape(*input.shape[: input.dim() - gamma.dim()], *[1] * gamma.dim())
    normal, upper = input * rstd, dy * gamma
    dx = rstd * (upper - normal * (upper * normal).mean(dims, keepdim=True))
    return dx, (dy * normal).sum_to_size(gamma.shape)


@formula("npu.npu_gemma_rms_norm")
def gemma_rms_norm(input: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    return _rms(input, 1 + gamma, epsilon)


@formula("npu.npu_add_rms_norm", rounds_between=True)
def add_rms_norm(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, ...]:
    y, rstd = _rms(x1 + x2, gamma, epsilon)
    return y, rstd, x1 + x2


@formula("npu.npu_add_rms_norm_cast", rounds_between=True)
def add_rms_norm_cast(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, ...]:
    y, rstd = _rms(x1 + x2, gamma, epsilon)
    return y, y, rstd, x1 + x2


@formula("npu.npu_add_rms_norm_v2", "npu.npu_add_rms_norm_v2_functional", rounds_between=True)
def add_rms_norm_v2(x1: Tensor, x2: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, ...]:
    """The result, and what is written into ``x1`` and ``x2``."""
    y, rstd = _rms(x1 + x2, gamma, epsilon)
    return rstd, y, x1 + x2


def _layer(x: Tensor, gamma: Tensor | None, beta: Tensor | None, number: int, eps: float) -> tuple[Tensor, ...]:
    """(layer norm, mean, reciprocal deviation) over the last dimensions."""
    dims = _dims(number)
    mean = x.mean(dims, keepdim=True)
    rstd = 1 / torch.sqrt((x - mean).square().mean(dims, keepdim=True) + eps)
    y = (x - mean) * rstd
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta, mean, rstd


def _layer_backward(
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gamma: Tensor | None, number: int
) -> tuple[Tensor, Tensor, Tensor]:
    dims, kept = _dims(number), (*x.shape[: x.dim() - number], *[1] * number)
    mean, rstd = mean.reshape(kept), rstd.reshape(kept)
    normal, upper = (x - mean) * rstd, dy if gamma is None else dy * gamma
    pull = upper - upper.mean(dims, keepdim=True) - normal * (upper * normal).mean(dims, keepdim=True)
    shape = x.shape[x.dim() - number :]
    return rstd * pull, (dy * normal).sum_to_size(shape), dy.sum_to_size(shape)


@formula("npu.npu_layer_norm_eval")
def layer_norm_eval(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return _layer(input, weight, bias, len(normalized_shape), eps)[0]


@formula("npu.npu_layernorm_grad")
def layernorm_grad(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
) -> tuple[Tensor, ...]:
    number = len(normalized_shape)
    gamma = None if weight is None else weight.reshape(tuple(normalized_shape))
    return _layer_backward(grad_out, input, mean, rstd, gamma, number)


@formula("npu.npu_add_layer_norm", rounds_between=True)
def add_layer_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, beta: Tensor, epsilon: float = 1e-5, additional_output: bool = False
) -> tuple[Tensor, ...]:
    return *_layer(x1 + x2, gamma, beta, gamma.dim(), epsilon), x1 + x2


@formula("npu.npu_add_layer_norm_backward", rounds_between=True)
def add_layer_norm_backward(
    dy_opt: Tensor | None,
    x1: Tensor,
    x2: Tensor,
    rstd: Tensor,
    mean: Tensor,
    gamma: Tensor,
    dsum_opt: Tensor | None,
) -> tuple[Tensor, ...]:
    """``dsum_opt`` is the gradient of x1 + x2, the fourth result of the forward operator."""
    dy = torch.zeros_like(x1) if dy_opt is None else dy_opt
    dx, dgamma, dbeta = _layer_backward(dy, x1 + x2, mean, rstd, gamma, gamma.dim())
    dx = dx if dsum_opt is None else dx + dsum_opt
    return dx, dx, dgamma, dbeta


@formula("npu.npu_deep_norm", rounds_between=True)
def deep_norm(
    x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, alpha: float = 0.3, epsilon: float = 1e-6
) -> tuple[Tensor, ...]:
    y, mean, rstd = _layer(alpha * x + gx, gamma, beta, gamma.dim(), epsilon)
    return mean, rstd, y


@formula("npu.npu_deep_norm_backward", rounds_between=True)
def deep_norm_backward(
    dy: Tensor, x: Tensor, gx: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor, alpha: float = 0.3
) -> tuple[Tensor, ...]:
    dx, dgamma, dbeta = _layer_backward(dy, alpha * x + gx, mean, rstd, gamma, gamma.dim())
    return alpha * dx, dx, dbeta, dgamma


def _by_channel(values: Tensor | None, x: Tensor) -> Tensor | None:
    return None if values is None else values.reshape(-1, *[1] * (x.dim() - 2))


def _group(
    x: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    normal, mean, rstd = _layer(x.reshape(x.size(0), groups, -1), None, None, 1, eps)
    y, by_channel = normal.reshape(x.shape), (_by_channel(weight, x), _by_channel(bias, x))
    y = y if by_channel[0] is None else y * by_channel[0]
    return y if by_channel[1] is None else y + by_channel[1], mean[..., 0], rstd[..., 0]


@formula("npu.npu_group_norm_silu")
def group_norm_silu(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, group: int, eps: float = 1e-5
) -> tuple[Tensor, ...]:
    y, mean, rstd = _group(input, group, weight, bias, eps)
    return y * torch.sigmoid(y), mean, rstd


@formula("npu.npu_group_norm_swish")
def group_norm_swish(
    input: Tensor,
    num_groups: int,
    weight: Tensor,
    bias: Tensor,
    eps: float | None = 1e-5,
    swish_scale: float | None = 1.0,
) -> tuple[Tensor, ...]:
    y, mean, rstd = _group(input, num_groups, weight, bias, 1e-5 if eps is None else eps)
    return y * torch.sigmoid((1.0 if swish_scale is None else swish_scale) * y), mean, rstd


@formula("npu.npu_group_norm_swish_grad")
def group_norm_swish_grad(
    grad: Tensor,
    input: Tensor,
    num_groups: int,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    rstd: Tensor,
    grad_input_mask: Sequence[bool],
    swish_scale: float | None = 1.0,
) -> tuple[Tensor | None, ...]:
    scale, grouped = 1.0 if swish_scale is None else swish_scale, (input.size(0), num_groups, -1)
    of_group = (input.size(0), num_groups, 1)
    normal = ((input.reshape(grouped) - mean.reshape(of_group)) * rstd.reshape(of_group)).reshape(input.shape)
    gamma, beta = _by_channel(weight, input), _by_channel(bias, input)
    assert gamma is not None and beta is not None
    of_norm = gradients(lambda y: y * torch.sigmoid(scale * y), [normal * gamma + beta], grad)[0]
    dx = _layer_backward((of_norm * gamma).reshape(grouped), input.reshape(grouped), mean, rstd, None, 1)[0]
    others = [d for d in range(input.dim()) if d != 1]
    return wanted((dx.reshape(input.shape), (of_norm * normal).sum(others), of_norm.sum(others)), grad_input_mask)
