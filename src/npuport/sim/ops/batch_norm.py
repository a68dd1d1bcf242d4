"""The pieces of synchronised batch normalisation (torch_npu/utils/syncbatchnorm.py and torch.nn.SyncBatchNorm use
them).

PyTorch has these aten operators for CUDA only (aten/src/ATen/native/cuda/Normalization.cu gives their meaning);
`npu::batch_norm_reduce` and `npu::batch_norm_gather_stats_update` exchange sums instead of means
(torch_npu-batch_norm_reduce.md, BatchNormGatherStatsUpdateKernelNpuOpApi.cpp). Channels are dimension 1; statistics are
float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel


def _other_dims(input: Tensor) -> list[int]:
    return [d for d in range(input.dim()) if d != 1]


def _per_channel(values: Tensor, input: Tensor) -> Tensor:
    return values.float().view([1, -1] + [1] * (input.dim() - 2))


@kernel("aten::batch_norm_stats")
def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(mean, 1 / sqrt(biased variance + eps)) per channel."""
    variance, mean = torch.var_mean(input.float(), dim=_other_dims(input), correction=0)
    return mean, torch.rsqrt(variance + eps)


@kernel("aten::batch_norm_elemt")
def batch_norm_elemt(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    """(x - mean)·invstd·weight + bias; `eps` is already inside invstd."""
    out = (input.float() - _per_channel(mean, input)) * _per_channel(invstd, input)
    if weight is not None:
        out = out * _per_channel(weight, input)
    if bias is not None:
        out = out + _per_channel(bias, input)
    return out.to(input.dtype)


@kernel("aten::batch_norm_elemt.out")
def batch_norm_elemt_out(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float, *, out: Tensor
) -> Tensor:
    return out.resize_(input.shape).copy_(batch_norm_elemt(input, weight, bias, mean, invstd, eps))


@kernel("aten::batch_norm_gather_stats_with_counts")
def batch_norm_gather_stats_with_counts(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Combine mean and invstd of each process [world, C], with its number of elements per channel [world]; update
    running statistics in place.
    """
    weights = counts.float().view(-1, 1)
    total = weights.sum()
    variance = invstd.float().pow(-2) - eps
    mean_all = (mean.float() * weights).sum(dim=0) / total
    square_sum = ((variance + (mean.float() - mean_all).square()) * weights).sum(dim=0)
    results = _finish(mean_all, square_sum, total, running_mean, running_var, momentum, eps)
    half = input.dtype == mean.dtype == torch.float16
    return (results[0].half(), results[1].half()) if half else results


def _finish(
    mean: Tensor,
    squares: Tensor,
    total: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """`squares` is the sum of squared deviations; running_var takes the unbiased variance."""
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean.to(running_mean.dtype), alpha=momentum)
    if running_var is not None:
        running_var.mul_(1 - momentum).add_((squares / (total - 1)).to(running_var.dtype), alpha=momentum)
    return mean, torch.rsqrt(squares / total + eps)


@kernel("npu::batch_norm_reduce")
def batch_norm_reduce(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(sum, sum of squares) per channel, float32; `eps` has no effect."""
    if input.dim() < 2:
        raise RuntimeError("The dim input tensor [self] must more than 1.")
    wide, dims = input.float(), _other_dims(input)
    return wide.sum(dim=dims), wide.square().sum(dim=dims)


@kernel("npu::batch_norm_gather_stats_update")
def batch_norm_gather_stats_update(
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """As batch_norm_gather_stats_with_counts, but `mean` and `invstd` hold the sums and square sums of each process
    [world, C].
    """
    total = counts.float().sum()
    mean_all = mean.float().sum(dim=0) / total
    squares = invstd.float().sum(dim=0) - total * mean_all.square()
    mean_all, invstd_all = _finish(mean_all, squares, total, running_mean, running_var, momentum, eps)
    return mean_all.to(mean.dtype), invstd_all.to(mean.dtype)


@kernel("aten::batch_norm_backward_reduce")
def batch_norm_backward_reduce(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    invstd: Tensor,
    weight: Tensor | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """(Σ dy, Σ dy·(x - mean), dweight, dbias) per channel, of this process."""
    grad, dims = grad_out.float(), _other_dims(input)
    sum_dy = grad.sum(dim=dims)
    sum_dy_xmu = (grad * (input.float() - _per_channel(mean, input))).sum(dim=dims)
    return (
        sum_dy if input_g else None,
        sum_dy_xmu if input_g else None,
        sum_dy_xmu * invstd.float() if weight_g else None,
        sum_dy.clone() if bias_g else None,
    )


@kernel("aten::batch_norm_backward_elemt")
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
    """dx from the sums over all processes; `count` holds the elements per channel of each."""
    total = count.float().sum()
    inverse = _per_channel(invstd, input)
    deviation = input.float() - _per_channel(mean, input)
    projected = deviation * inverse.square() * _per_channel(sum_dy_xmu / total, input)
    dx = (grad_out.float() - _per_channel(sum_dy / total, input) - projected) * inverse
    if weight is not None:
        dx = dx * _per_channel(weight, input)
    return dx.to(input.dtype)
