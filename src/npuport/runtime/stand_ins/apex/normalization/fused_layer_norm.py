"""Norms whose statistics are float32. The result has the input's dtype, that of the weight in the "mixed" ones.

``memory_efficient`` changes what is kept for the backward pass, not the numbers, and has no effect here.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

Shape = int | Sequence[int]


def _sizes(shape: Shape) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, numbers.Integral) else tuple(shape)  # type: ignore[arg-type]


def _float(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.float()


def _layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Shape, eps: float) -> Tensor:
    """As float32."""
    with torch.autocast(x.device.type, enabled=False):
        return functional.layer_norm(x.float(), _sizes(shape), _float(weight), _float(bias), eps)


def _rms_norm(x: Tensor, weight: Tensor | None, shape: Shape, eps: float) -> Tensor:
    """As float32: x / √(mean(x²) + ε) · weight."""
    with torch.autocast(x.device.type, enabled=False):
        if x.device.type == "npu" and weight is not None:
            import torch_npu

            fused: Tensor = torch_npu.npu_rms_norm(x.float(), weight.float(), eps)[0]
            return fused
        numbers_ = x.float()
        axes = tuple(range(-len(_sizes(shape)), 0))
        normed = numbers_ * torch.rsqrt(numbers_.square().mean(axes, keepdim=True) + eps)
        return normed if weight is None else normed * weight.float()


def fused_layer_norm_affine(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    normalized_shape: Shape,
    eps: float = 1e-6,
    memory_efficient: bool = False,  # noqa: ARG001
) -> Tensor:
    """Layer norm with weight and bias, in the dtype of ``input``."""
    return _layer_norm(input, weight, bias, normalized_shape, eps).to(input.dtype)


def fused_layer_norm(
    input: Tensor,
    normalized_shape: Shape,
    eps: float = 1e-6,
    memory_efficient: bool = False,  # noqa: ARG001
) -> Tensor:
    """Layer norm without weights, in the dtype of ``input``."""
    return _layer_norm(input, None, None, normalized_shape, eps).to(input.dtype)


def mixed_dtype_fused_layer_norm_affine(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    normalized_shape: Shape,
    eps: float = 1e-6,
    memory_efficient: bool = False,  # noqa: ARG001
) -> Tensor:
    """Layer norm in the dtype of ``weight``."""
    return _layer_norm(input, weight, bias, normalized_shape, eps).to(weight.dtype)


def fused_rms_norm_affine(
    input: Tensor,
    weight: Tensor,
    normalized_shape: Shape,
    eps: float = 1e-6,
    memory_efficient: bool = False,  # noqa: ARG001
) -> Tensor:
    """RMS norm with a weight, in the dtype of ``input``."""
    return _rms_norm(input, weight, normalized_shape, eps).to(input.dtype)


def fused_rms_norm(
    input: Tensor,
    normalized_shape: Shape,
    eps: float = 1e-6,
    memory_efficient: bool = False,  # noqa: ARG001
) -> Tensor:
    """RMS norm without a weight, in the dtype of ``input``."""
    return _rms_norm(input, None, normalized_shape, eps).to(input.dtype)


def mixed_dtype_fused_rms_norm_affine(
    input: Tensor,
    weight: Tensor,
    normalized_shape: Shape,
    eps: float = 1e-6,
    memory_efficient: bool = False,  # noqa: ARG001
) -> Tensor:
    """RMS norm in the dtype of ``weight``."""
    return _rms_norm(input, weight, normalized_shape, eps).to(weight.dtype)


manual_rms_norm = _rms_norm


class _Norm(nn.Module):
    """What all four have: a shape, ε and, unless ``elementwise_affine`` is False, a weight."""

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        self.normalized_shape = torch.Size(_sizes(normalized_shape))
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.memory_efficient = memory_efficient
        self.weight = nn.Parameter(torch.ones(self.normalized_shape)) if elementwise_affine else None

    def reset_parameters(self) -> None:
        """Weights of 1, biases of 0."""
        if self.weight is not None:
            nn.init.ones_(self.weight)

    def extra_repr(self) -> str:
        return f"{tuple(self.normalized_shape)}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class FusedLayerNorm(_Norm):
    """Layer norm over the last dimensions, whose sizes are ``normalized_shape``."""

    def __init__(
        self,
        normalized_shape: Shape,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, memory_efficient)
        self.bias = nn.Parameter(torch.zeros(self.normalized_shape)) if elementwise_affine else None

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return _layer_norm(input, self.weight, self.bias, self.normalized_shape, self.eps).to(input.dtype)


class FusedRMSNorm(_Norm):
    """RMS norm over the last dimensions, whose sizes are ``normalized_shape``."""

    def forward(self, input: Tensor) -> Tensor:
        return _rms_norm(input, self.weight, self.normalized_shape, self.eps).to(input.dtype)


class MixedFusedLayerNorm(FusedLayerNorm):
    """Layer norm with weights of another dtype than the input; the result has theirs."""

    def __init__(self, normalized_shape: Shape, eps: float = 1e-5, *, memory_efficient: bool = False) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine=True, memory_efficient=memory_efficient)

    def forward(self, input: Tensor) -> Tensor:
        assert self.weight is not None
        return super().forward(input.float()).to(self.weight.dtype)


class MixedFusedRMSNorm(FusedRMSNorm):
    """RMS norm with a weight of another dtype than the input; the result has the weight's."""

    def __init__(self, normalized_shape: Shape, eps: float = 1e-5, *, memory_efficient: bool = False) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine=True, memory_efficient=memory_efficient)

    def forward(self, input: Tensor) -> Tensor:
        assert self.weight is not None
        return super().forward(input.float()).to(self.weight.dtype)
