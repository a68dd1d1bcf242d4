"""Activations and gated activations.

Formulas: the pages of Ascend/op-plugin docs/zh/custom_APIs/torch_npu (one per operator) for the Atlas A2/A3 products;
derivatives by hand or by autograd of the formula. Half and bfloat16 inputs are computed in float32 and rounded once, as
the device's vector unit does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from npuport.sim.ops.gradients import vector_jacobian
from npuport.sim.ops.registration import kernel

_FAST_GELU = 1.702


def in_float32(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """`function` of the tensors in float32 (float64 stays), rounded to the dtype of the first."""
    first = tensors[0]
    wide = torch.promote_types(first.dtype, torch.float32)
    return function(*[t.to(wide) for t in tensors]).to(first.dtype)


def _gradient(function: Callable[..., Tensor], input: Tensor, grad: Tensor) -> Tensor:
    wide = torch.promote_types(input.dtype, torch.float32)
    found = vector_jacobian(function, (input.to(wide),), (grad.to(wide),))[0]
    assert found is not None
    return found.to(input.dtype)


def quick_gelu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-_FAST_GELU * x))


@kernel("npu::fast_gelu", "npu::npu_fast_gelu")
def fast_gelu(input: Tensor) -> Tensor:
    """x / (1 + exp(-1.702·x)) (torch_npu-npu_fast_gelu.md); the page's formula for the older chips,
    x / (1 + exp(-1.702·|x|)) · exp(0.851·(x - |x|)), is the same function.
    """
    return in_float32(quick_gelu, input)


@kernel("npu::npu_fast_gelu_backward")
def fast_gelu_backward(grad: Tensor, input: Tensor) -> Tensor:
    return _gradient(lambda x: x * torch.sigmoid(_FAST_GELU * x), input, grad)


@kernel("npu::npu_gelu")
def npu_gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """GELU with erf ("none") or its tanh form (torch_npu-npu_gelu.md)."""
    return functional.gelu(input, approximate=approximate)


@kernel("npu::npu_gelu_backward")
def npu_gelu_backward(grad_output: Tensor, input: Tensor, *, approximate: str = "none") -> Tensor:
    return torch.ops.aten.gelu_backward(grad_output, input, approximate=approximate)


@kernel("npu::npu_gelu_mul")
def npu_gelu_mul(input: Tensor, *, approximate: str = "none") -> Tensor:
    """gelu(first half) · second half along the last dimension (torch_npu-npu_gelu_mul.md)."""
    left, right = input.chunk(2, dim=-1)
    return functional.gelu(left, approximate=approximate) * right


@kernel("npu::npu_silu")
def npu_silu(input: Tensor) -> Tensor:
    """x·sigmoid(x) (torch_npu-npu_silu.md)."""
    return functional.silu(input)


@kernel("npu::npu_silu_")
def npu_silu_(input: Tensor) -> Tensor:
    return input.copy_(functional.silu(input))


@kernel("npu::npu_silu_backward")
def npu_silu_backward(grad_output: Tensor, x0: Tensor, x1: Tensor) -> Tensor:
    return torch.ops.aten.silu_backward(grad_output, x0)


@kernel("npu::npu_mish")
def npu_mish(input: Tensor) -> Tensor:
    """x·tanh(softplus(x)) (torch_npu-npu_mish.md)."""
    return functional.mish(input)


@kernel("npu::npu_mish_backward")
def npu_mish_backward(grad: Tensor, input: Tensor) -> Tensor:
    return torch.ops.aten.mish_backward(grad, input)


def _swiglu(x: Tensor, dim: int) -> Tensor:
    gate, up = x.chunk(2, dim=dim)
    return functional.silu(gate) * up


@kernel("npu::npu_swiglu")
def npu_swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """silu(A)·B with A, B the first and second half along `dim` (torch_npu-npu_swiglu.md)."""
    _check_even(input, dim, "npu_swiglu")
    return in_float32(lambda x: _swiglu(x, dim), input)


@kernel("npu::npu_swiglu_backward")
def npu_swiglu_backward(grad_output: Tensor, input: Tensor, dim: int = -1) -> Tensor:
    return _gradient(lambda x: _swiglu(x, dim), input, grad_output)


@kernel("npu::npu_clipped_swiglu")
def npu_clipped_swiglu(
    x: Tensor,
    *,
    group_index: Tensor | None = None,
    dim: int = -1,
    alpha: float = 1.702,
    limit: float = 7.0,
    bias: float = 1.0,
    interleaved: bool = True,
) -> Tensor:
    """A·sigmoid(alpha·A)·(B + bias) with A clamped from above and B from both sides at `limit`; A and B are the even
    and odd elements, or the halves, of the dimensions from `dim` on taken as one (torch_npu-npu_clipped_swiglu.md).

    With `group_index` only as many rows as it adds up to are computed; the rest, unwritten on the device, are 0.
    """
    _check_even(x, dim, "npu_clipped_swiglu")
    start = dim % x.dim()
    rows = x.reshape(math.prod(x.shape[:start]), -1)
    used = rows.size(0) if group_index is None else int(group_index.sum())

    def clipped(part: Tensor) -> Tensor:
        gate, up = (part[:, ::2], part[:, 1::2]) if interleaved else part.chunk(2, dim=1)
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
        return gate * torch.sigmoid(alpha * gate) * (up + bias)

    out = x.new_zeros(rows.size(0), rows.size(1) // 2)
    out[:used] = in_float32(clipped, rows[:used])
    return out.view(*x.shape[:start], x.size(start) // 2, *x.shape[start + 1 :])


def _geglu(x: Tensor, dim: int, approximate: int, activate_left: bool) -> tuple[Tensor, Tensor]:
    left, right = x.chunk(2, dim=dim)
    active, other = (left, right) if activate_left else (right, left)
    gelu = functional.gelu(active, approximate="tanh" if approximate else "none")
    return other * gelu, gelu


@kernel("npu::npu_geglu")
def npu_geglu(input: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> tuple[Tensor, Tensor]:
    """(output, gelu of the activated half); `approximate` 0 is erf, 1 is tanh; the right half is activated unless
    `activate_left`.

    Source: CANN's aclnnGeGluV3 (hicann/ops-nn activation/ge_glu_v2), which op-plugin calls with these arguments.
    """
    _check_even(input, dim, "npu_geglu")
    wide = torch.promote_types(input.dtype, torch.float32)
    output, gelu = _geglu(input.to(wide), dim, approximate, activate_left)
    return output.to(input.dtype), gelu.to(input.dtype)


@kernel("npu::npu_geglu_grad")
def npu_geglu_grad(
    grad_output: Tensor, input: Tensor, gelu: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False
) -> Tensor:
    return _gradient(lambda x: _geglu(x, dim, approximate, activate_left)[0], input, grad_output)


def _check_even(input: Tensor, dim: int, name: str) -> None:
    if input.size(dim) % 2:
        raise RuntimeError(f"{name}: the size of dimension {dim} must be even, but the shape is {list(input.shape)}")


def _masked_softmax(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    return torch.softmax((x * scale).masked_fill(mask, -10000.0), dim=-1)


@kernel("npu::npu_scaled_masked_softmax")
def npu_scaled_masked_softmax(x: Tensor, mask: Tensor, scale: float = 1, fixed_triu_mask: bool = False) -> Tensor:
    """softmax(masked_fill(scale·x, mask, -10000)) along the last dimension (torch_npu-npu_scaled_masked_softmax.md)."""
    if fixed_triu_mask:
        raise RuntimeError("npu_scaled_masked_softmax: fixed_triu_mask must be False")
    return in_float32(lambda wide: _masked_softmax(wide, mask, scale), x)


@kernel("npu::npu_scaled_masked_softmax_backward")
def npu_scaled_masked_softmax_backward(
    y_grad: Tensor, y: Tensor, mask: Tensor, scale: float, fixed_triu_mask: bool
) -> Tensor:
    """scale·y·(g - Σ g·y), zero where masked; from the output `y` alone."""

    def gradient(grad: Tensor, output: Tensor) -> Tensor:
        inner = output * (grad - (grad * output).sum(dim=-1, keepdim=True))
        return (inner * scale).masked_fill(mask, 0)

    return in_float32(gradient, y_grad, y)


@kernel("npu::npu_attn_softmax_")
def npu_attn_softmax_(input: Tensor) -> Tensor:
    """Softmax along the last dimension, in place (op_plugin test_npu_attn_softmax.py)."""
    return input.copy_(torch.softmax(input, dim=-1))


@kernel("npu::npu_attn_softmax_backward_")
def npu_attn_softmax_backward_(input: Tensor, grad_output: Tensor, values: Tensor) -> Tensor:
    """In place: from the softmax (`input`) to the gradient of its argument, where grad_output belongs to
    softmax·values (same test).
    """
    grad = grad_output @ values.mT
    return input.copy_(input * (grad - (grad * input).sum(dim=-1, keepdim=True)))
