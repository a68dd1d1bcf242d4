"""Activations and gated activations (op-plugin docs/zh/custom_APIs/torch_npu: npu_fast_gelu, npu_gelu, npu_gelu_mul,
npu_silu, npu_mish, npu_swiglu, npu_clipped_swiglu; GeGLU: CANN's aclnnGeGluV3)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from npuport.precision.references.formulas import Partly, formula, gradients, refuse


def _gelu(x: Tensor, approximate: str) -> Tensor:
    if approximate == "tanh":
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    refuse("approximate", approximate, "none")
    return 0.5 * x * torch.special.erfc(-x / math.sqrt(2))


def _silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def _mish(x: Tensor) -> Tensor:
    return x * torch.tanh(torch.logaddexp(x, torch.zeros_like(x)))


def _halves(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    half = x.size(dim) // 2
    return x.narrow(dim, 0, half), x.narrow(dim, half, half)


def _swiglu(x: Tensor, dim: int) -> Tensor:
    gate, up = _halves(x, dim)
    return _silu(gate) * up


@formula("npu.npu_fast_gelu", "npu.fast_gelu")
def fast_gelu(input: Tensor) -> Tensor:
    return input * torch.sigmoid(1.702 * input)


@formula("npu.npu_fast_gelu_backward")
def fast_gelu_backward(grad: Tensor, input: Tensor) -> Tensor:
    return gradients(fast_gelu, [input], grad)[0]


@formula("npu.npu_gelu")
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    return _gelu(input, approximate)


@formula("npu.npu_gelu_backward")
def gelu_backward(grad_output: Tensor, input: Tensor, *, approximate: str = "none") -> Tensor:
    return gradients(lambda x: _gelu(x, approximate), [input], grad_output)[0]


@formula("npu.npu_gelu_mul")
def gelu_mul(input: Tensor, *, approximate: str = "none") -> Tensor:
    active, other = _halves(input, -1)
    return _gelu(active, approximate) * other


@formula("npu.npu_silu", "npu.npu_silu_")
def silu(input: Tensor) -> Tensor:
    return _silu(input)


@formula("npu.npu_silu_backward")
def silu_backward(grad_output: Tensor, x0: Tensor, x1: Tensor) -> Tensor:
    """``x0`` is the argument of silu, ``x1`` its result."""
    return gradients(_silu, [x0], grad_output)[0]


@formula("npu.npu_mish")
def mish(input: Tensor) -> Tensor:
    return _mish(input)


@formula("npu.npu_mish_backward")
def mish_backward(grad: Tensor, input: Tensor) -> Tensor:
    return gradients(_mish, [input], grad)[0]


@formula("npu.npu_swiglu")
def swiglu(input: Tensor, dim: int = -1) -> Tensor:
    return _swiglu(input, dim)


@formula("npu.npu_swiglu_backward")
def swiglu_backward(grad_output: Tensor, input: Tensor, dim: int = -1) -> Tensor:
    return gradients(lambda x: _swiglu(x, dim), [input], grad_output)[0]


@formula("npu.npu_clipped_swiglu")
def clipped_swiglu(
    x: Tensor,
    *,
    group_index: Tensor | None = None,
    dim: int = -1,
    alpha: float = 1.702,
    limit: float = 7.0,
    bias: float = 1.0,
    interleaved: bool = True,
) -> Any:
    """The dimensions from ``dim`` on count as one. Rows beyond the sum of ``group_index`` are not written."""
    start = dim % x.dim()
    rows = x.flatten(start).reshape(math.prod(x.shape[:start]), -1)
    gate, up = (rows[:, 0::2], rows[:, 1::2]) if interleaved else _halves(rows, 1)
    gate = gate.clamp(max=limit)
    made = gate * torch.sigmoid(alpha * gate) * (up.clamp(-limit, limit) + bias)
    shape = (*x.shape[:start], x.size(start) // 2, *x.shape[start + 1 :])
    used = len(rows) if group_index is None else int(group_index.sum())
    known = (torch.arange(len(rows)) < used)[:, None].expand(made.shape)
    return Partly(made.reshape(shape), known.reshape(shape))


def _geglu(x: Tensor, dim: int, approximate: int, activate_left: bool) -> tuple[Tensor, Tensor]:
    left, right = _halves(x, dim)
    active, other = (left, right) if activate_left else (right, left)
    activated = _gelu(active, "tanh" if approximate else "none")
    return other * activated, activated


@formula("npu.npu_geglu")
def geglu(input: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> tuple[Tensor, Tensor]:
    return _geglu(input, dim, approximate, activate_left)


@formula("npu.npu_geglu_grad")
def geglu_grad(
    grad_output: Tensor, input: Tensor, gelu: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False
) -> Tensor:
    """``gelu``, which the forward pass gave, takes the place of the activation, as the kernel reads it."""
    left, right = _halves(input, dim)
    active, other = (left, right) if activate_left else (right, left)
    of_active = gradients(lambda x: _gelu(x, "tanh" if approximate else "none"), [active], grad_output * other)[0]
    parts = (of_active, grad_output * gelu) if activate_left else (grad_output * gelu, of_active)
    return torch.cat(parts, dim)
