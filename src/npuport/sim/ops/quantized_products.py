"""Matrix products of quantized operands (pages: docs/zh/custom_APIs/torch_npu of Ascend/op-plugin).

Products of integers are added up exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.layout import scalar_type
from npuport.sim.ops.quantization import quantized, scale_and_offset, unpack_int4
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError


def _integers(matrix: Tensor) -> Tensor:
    """float64 of int8, or of int4 in int32, packed along the dimension that lies densest in memory."""
    if matrix.dtype == torch.int8:
        return matrix.double()
    if matrix.stride(-2) == 1 and matrix.stride(-1) == matrix.size(-2):
        return unpack_int4(matrix.mT).mT.double()
    return unpack_int4(matrix).double()


def scaled_product(x1: Tensor, x2: Tensor, bias: Tensor | None, scales: Sequence[Tensor | None]) -> Tensor:
    """(x1 @ x2 + bias) times each of the scales that is there, in float64; a floating bias is added after them."""
    product = _integers(x1) @ _integers(x2)
    whole_bias = bias is not None and not bias.is_floating_point()
    if bias is not None and whole_bias:
        product = product + bias
    for scale in scales:
        if scale is not None:
            product = product * scale.double()
    return product if bias is None or whole_bias else product + bias.double()


@kernel("npu::npu_quant_matmul")
def npu_quant_matmul(
    x1: Tensor,
    x2: Tensor,
    scale: Tensor,
    *,
    offset: Tensor | None = None,
    pertoken_scale: Tensor | None = None,
    bias: Tensor | None = None,
    output_dtype: int | None = None,
    x1_dtype: int | None = None,
    x2_dtype: int | None = None,
    pertoken_scale_dtype: int | None = None,
    scale_dtype: int | None = None,
    group_sizes: Sequence[int] | None = None,
    y_scale: Tensor | None = None,
) -> Tensor:
    """x1 @ x2 · scale [1 or n] · pertoken_scale [m], int8 unless `output_dtype` is float16 or bfloat16
    (torch_npu-npu_quant_matmul.md).

    An integer bias is added before the scale, a floating one after it; the offset is added last. An int64 scale comes
    from npu_trans_quant_param and may hold an offset.
    """
    operator = "npu::npu_quant_matmul"
    target = torch.int8 if output_dtype is None else scalar_type(output_dtype)
    others = x1_dtype, x2_dtype, pertoken_scale_dtype, scale_dtype, group_sizes, y_scale
    if any(o is not None for o in others) or x1.dtype != x2.dtype or x1.dtype not in (torch.int8, torch.int32):
        raise NoReferenceError(operator, "other than int8 or int4 operands with a scale per tensor, channel or token")
    if scale.dim() != 1 or target not in (torch.int8, torch.float16, torch.bfloat16):
        raise NoReferenceError(operator, f"a scale {list(scale.shape)} or a result {target}")
    factor, packed_offset = scale_and_offset(scale)
    product = scaled_product(x1, x2, bias, (factor, None if pertoken_scale is None else pertoken_scale.unsqueeze(-1)))
    added = offset if offset is not None else packed_offset if target == torch.int8 else None
    return quantized(product if added is None else product + added.double(), target)


def _per_element(factors: Tensor, weight: Tensor, group_size: int) -> Tensor:
    """Factors per tensor, per column or per group of rows, for a weight [K, N]."""
    if group_size and factors.dim() == 2 and factors.size(0) > 1:
        return factors.repeat_interleave(group_size, dim=0)[: weight.size(-2)]
    return factors


@kernel("npu::npu_weight_quant_batchmatmul")
def npu_weight_quant_batchmatmul(
    x: Tensor,
    weight: Tensor,
    antiquant_scale: Tensor,
    antiquant_offset: Tensor | None = None,
    quant_scale: Tensor | None = None,
    quant_offset: Tensor | None = None,
    bias: Tensor | None = None,
    antiquant_group_size: int = 0,
    inner_precise: int = 0,
    weight_dtype: int | None = None,
) -> Tensor:
    """x @ ((weight + offset) · scale) + bias, in the dtype of x, or times `quant_scale` plus `quant_offset` in int8
    (torch_npu-npu_weight_quant_batchmatmul.md). The weight is brought into the dtype of x, in which the cube unit
    multiplies.
    """
    operator = "npu::npu_weight_quant_batchmatmul"
    if weight_dtype is not None or weight.dtype not in (torch.int8, torch.int32):
        raise NoReferenceError(operator, f"a weight of {weight.dtype}")
    if antiquant_scale.dtype == torch.int64:
        raise NoReferenceError(operator, "an int64 antiquant_scale")
    values = _integers(weight).to(x.dtype)
    if antiquant_offset is not None:
        values = values + _per_element(antiquant_offset, values, antiquant_group_size)
    values = values * _per_element(antiquant_scale, values, antiquant_group_size)
    product = x.float() @ values.float()
    if bias is not None:
        product = product + bias.float()
    if quant_scale is None:
        return product.to(x.dtype)
    factor, packed_offset = scale_and_offset(quant_scale)
    added = quant_offset if quant_offset is not None else packed_offset
    scaled = product * factor
    return quantized(scaled if added is None else scaled + added.float(), torch.int8)


@kernel("npu::npu_dequant_bias")
def npu_dequant_bias(
    x: Tensor,
    weight_scale: Tensor,
    activation_scale: Tensor | None,
    bias: Tensor | None,
    *,
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    """int32 [M, N] times weight_scale [N] and activation_scale [M], float16 unless `output_dtype`; an integer bias [N]
    is added before, a floating one after (ops-nn quant/dequant_bias/README.md).
    """
    target = torch.float16 if output_dtype is None else output_dtype
    if target not in (torch.float16, torch.bfloat16):
        raise RuntimeError("The dtype should be half or bfloat16")
    whole_bias = bias is not None and not bias.is_floating_point()
    values = (x + bias if whole_bias else x).double() * weight_scale.double()
    if activation_scale is not None:
        values = values * activation_scale.double().unsqueeze(-1)
    if bias is not None and not whole_bias:
        values = values + bias.double()
    return values.to(target)
