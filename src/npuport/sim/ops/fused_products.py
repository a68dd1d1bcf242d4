"""Matrix products fused with what stands around them: transposition, activation, feed-forward layers.

Sources: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_transpose_batchmatmul.md and torch_npu-npu_ffn.md,
CANN's aclnnFusedMatmul (hicann/ops-nn matmul/fused_mat_mul), the golden functions of op-plugin's tests. Quantised uses
have no reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from npuport.sim.ops.activations import quick_gelu
from npuport.sim.ops.precision import wide
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError, refuse_uses

_FFN_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "fastgelu": quick_gelu,
    "gelu": functional.gelu,
    "relu": torch.relu,
    "silu": functional.silu,
}


@kernel("npu::npu_fused_matmul")
def npu_fused_matmul(
    x1: Tensor, x2: Tensor, *, bias: Tensor | None = None, x3: Tensor | None = None, fused_op_type: str = ""
) -> Tensor:
    """op(x1·x2 + bias, x3) with op "", relu, add, mul, gelu_erf, gelu_tanh or 16cast32 (a float32 result)."""
    if fused_op_type in ("add", "mul") and x3 is None:
        raise RuntimeError(f"npu_fused_matmul: fused_op_type {fused_op_type!r} needs x3")
    if fused_op_type in ("gelu_erf", "gelu_tanh") and bias is not None:
        raise RuntimeError(f"npu_fused_matmul: fused_op_type {fused_op_type!r} takes no bias")
    product = wide(x1) @ wide(x2)
    if bias is not None:
        product = product + wide(bias)
    if fused_op_type in ("", "16cast32"):
        result = product
    elif fused_op_type == "relu":
        result = torch.relu(product)
    elif fused_op_type in ("gelu_erf", "gelu_tanh"):
        result = functional.gelu(product, approximate="tanh" if fused_op_type == "gelu_tanh" else "none")
    elif fused_op_type in ("add", "mul") and x3 is not None:
        result = product + wide(x3) if fused_op_type == "add" else product * wide(x3)
    else:
        raise RuntimeError(f"npu_fused_matmul: unknown fused_op_type {fused_op_type!r}")
    return result if fused_op_type == "16cast32" else result.to(x1.dtype)


@kernel("npu::npu_transpose_batchmatmul")
def npu_transpose_batchmatmul(
    input: Tensor,
    weight: Tensor,
    *,
    bias: Tensor | None = None,
    scale: Tensor | None = None,
    perm_x1: Sequence[int] | None = None,
    perm_x2: Sequence[int] | None = None,
    perm_y: Sequence[int] | None = None,
    batch_split_factor: int | None = 1,
) -> Tensor:
    """permute(permute(input) @ permute(weight)) [M, B, N], or [factor, M, B·N/factor] for a batch_split_factor > 1."""
    if bias is not None or scale is not None:
        raise NoReferenceError("npu::npu_transpose_batchmatmul", "bias or scale")
    left, right = input.permute(list(perm_x1 or (0, 1, 2))), weight.permute(list(perm_x2 or (0, 1, 2)))
    product = (wide(left) @ wide(right)).permute(list(perm_y or (1, 0, 2))).to(input.dtype)
    if (batch_split_factor or 1) > 1:
        product = product.reshape(product.size(0), batch_split_factor, -1).transpose(0, 1)
    return product.contiguous()


_FFN_PLAIN = {"expert_tokens", "expert_tokens_index", "bias1", "bias2", "inner_precise"}


@kernel("npu::npu_ffn")
def npu_ffn(x: Tensor, weight1: Tensor, weight2: Tensor, activation: str, **named: Any) -> Tensor:
    """activation(x·W₁ + b₁)·W₂ + b₂, for each expert's share of the rows when `expert_tokens` gives their numbers."""
    operator = "npu::npu_ffn"
    refuse_uses(operator, named, _FFN_PLAIN)
    active = _FFN_ACTIVATIONS.get(activation)
    if active is None:
        raise NoReferenceError(operator, f"activation {activation}, whose halves no document tells apart")
    if named.get("expert_tokens_index") is not None:
        ends = list(named["expert_tokens_index"])
        sizes = [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    else:
        sizes = list(named.get("expert_tokens") or ())
    bias1, bias2 = named.get("bias1"), named.get("bias2")
    if not sizes:
        return _feed_forward(x, weight1, weight2, bias1, bias2, active)
    parts = []
    for i, rows in enumerate(x.split(sizes, dim=0)):
        own1, own2 = (None if bias is None else bias[i] for bias in (bias1, bias2))
        parts.append(_feed_forward(rows, weight1[i], weight2[i], own1, own2, active))
    return torch.cat(parts)


def _feed_forward(
    x: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    bias1: Tensor | None,
    bias2: Tensor | None,
    activation: Callable[[Tensor], Tensor],
) -> Tensor:
    inner = wide(x) @ wide(weight1)
    inner = activation(inner if bias1 is None else inner + wide(bias1))
    outer = inner @ wide(weight2)
    return (outer if bias2 is None else outer + wide(bias2)).to(x.dtype)
