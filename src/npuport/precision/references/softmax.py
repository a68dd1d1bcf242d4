"""Softmaxes with a mask (op-plugin docs: npu_scaled_masked_softmax; its test test_npu_attn_softmax.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.precision.references.formulas import formula, refuse


def _softmax(x: Tensor) -> Tensor:
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)


def _of_argument(y: Tensor, grad: Tensor) -> Tensor:
    """The gradient of the argument of a softmax that gave ``y``."""
    return y * (grad - (grad * y).sum(-1, keepdim=True))


@formula("npu.npu_scaled_masked_softmax")
def scaled_masked_softmax(x: Tensor, mask: Tensor, scale: float = 1, fixed_triu_mask: bool = False) -> Tensor:
    refuse("fixed_triu_mask", fixed_triu_mask, False)
    return _softmax(torch.where(mask.bool(), -10000.0, x * scale))


@formula("npu.npu_scaled_masked_softmax_backward")
def scaled_masked_softmax_backward(
    y_grad: Tensor, y: Tensor, mask: Tensor, scale: float, fixed_triu_mask: bool
) -> Tensor:
    refuse("fixed_triu_mask", fixed_triu_mask, False)
    return torch.where(mask.bool(), 0.0, scale * _of_argument(y, y_grad))


@formula("npu.npu_attn_softmax_")
def attn_softmax_(input: Tensor) -> Tensor:
    return _softmax(input)


@formula("npu.npu_attn_softmax_backward_")
def attn_softmax_backward_(input: Tensor, grad_output: Tensor, values: Tensor) -> Tensor:
    """``input`` is the softmax; ``grad_output`` belongs to its product with ``values``."""
    return _of_argument(input, grad_output @ values.transpose(-1, -2))
