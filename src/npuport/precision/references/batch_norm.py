"""The parts of a synchronised batch norm (ATen/native/cuda/Normalization.cuh names them; op-plugin
BatchNorm*KernelNpuOpApi.cpp): statistics of this process, those of all, and what is made of them."""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.precision.references.formulas import formula


def _others(x: Tensor) -> list[int]:
    return [d for d in range(x.dim()) if d != 1]


def _channels(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(-1, *[1] * (x.dim() - 2))


@formula("aten.batch_norm_stats")
def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    mean = input.mean(_others(input))
    variance = (input - _channels(mean, input)).square().mean(_others(input))
    return mean, 1 / torch.sqrt(variance + eps)


@formula("npu.batch_norm_reduce")
def batch_norm_reduce(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return input.sum(_others(input)), (input * input).sum(_others(input))


@formula("aten.batch_norm_elemt")
def batch_norm_elemt(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    made = (input - _channels(mean, input)) * _channels(invstd, input)
    made = made if weight is None else made * _channels(weight, input)
    return made if bias is None else made + _channels(bias, input)


def _together(
    mean: Tensor, squares: Tensor, total: Tensor, running: tuple[Tensor | None, Tensor | None], momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:  # fmt: skip
    """(mean, reciprocal deviation), and the running statistics that are written: ``squares`` is the sum of squared
    deviations of ``total`` values."""
    news = (mean, squares / (total - 1))
    written = [old * (1 - momentum) + momentum * new for old, new in zip(running, news, strict=True) if old is not None]
    return mean, 1 / torch.sqrt(squares / total + eps), *written


@formula("aten.batch_norm_gather_stats_with_counts")
def batch_norm_gather_stats_with_counts(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, ...]:
    """``mean`` and ``invstd`` are [processes, channels]."""
    weights = counts.reshape(-1, 1).to(mean.dtype)
    total = weights.sum()
    whole = (weights * mean).sum(0) / total
    squares = (weights * (invstd**-2 - eps + (mean - whole) ** 2)).sum(0)
    return _together(whole, squares, total, (running_mean, running_var), momentum, eps)


@formula("npu.batch_norm_gather_stats_update")
def batch_norm_gather_stats_update(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, ...]:
    """``mean`` and ``invstd`` are sums and sums of squares [processes, channels]."""
    total = counts.to(mean.dtype).sum()
    whole = mean.sum(0) / total
    return _together(whole, invstd.sum(0) - total * whole**2, total, (running_mean, running_var), momentum, eps)


@formula("aten.batch_norm_backward_reduce")
def batch_norm_backward_reduce(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, ...]:
    total = grad_out.sum(_others(input))
    product = (grad_out * (input - _channels(mean, input))).sum(_others(input))
    return (
        total if input_g else None,
        product if input_g else None,
        product * invstd if weight_g else None,
        total if bias_g else None,
    )


@formula("aten.batch_norm_backward_elemt")
def batch_norm_backward_elemt(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    sum_dy: Tensor,
    sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    number = count.to(grad_out.dtype).sum()
    away = (input - _channels(mean, input)) * _channels(invstd**2 * sum_dy_xmu / number, input)
    made = (grad_out - _channels(sum_dy / number, input) - away) * _channels(invstd, input)
    return made if weight is None else made * _channels(weight, input)
