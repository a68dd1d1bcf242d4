"""Products per group (expert).

Meaning: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_grouped_matmul.md, CANN's grouped_matmul_add
(hicann/ops-transformer gmm/), op_plugin/ops/opapi/GroupedMatmul*.cpp and the golden functions of op-plugin's tests.
Of quantised numbers, products of int8 by int8 have a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from npuport.sim.ops.activations import quick_gelu
from npuport.sim.ops.layout import scalar_type
from npuport.sim.ops.precision import wide
from npuport.sim.ops.quantization import quantized, scale_and_offset
from npuport.sim.ops.quantized_products import scaled_product
from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError, refuse_uses

_PLAIN = {"bias", "group_list", "split_item", "group_type", "group_list_type", "act_type", "tuning_config"}
_INT8 = {"scale", "per_token_scale", "output_dtype"}
_BY_PAIRS, _BY_ROWS, _BY_COLUMNS = -1, 0, 2
_ACTIVATIONS: dict[int, Callable[[Tensor], Tensor]] = {
    1: torch.relu,
    2: lambda x: functional.gelu(x, approximate="tanh"),
    4: quick_gelu,
    5: functional.silu,
}


@kernel("npu::npu_grouped_matmul", "npu::npu_grouped_matmul.List")
def npu_grouped_matmul(x: Sequence[Tensor], weight: Sequence[Tensor], **named: Any) -> list[Tensor]:
    """act(x_i·w_i + b_i) for each group, as a list (split_item 0, 1) or as one tensor (2, 3); of int8,
    (x_i·w_i + b_i)·scale_i·per_token_scale_i in `output_dtype`, where a floating b_i is added last.

    group_type -1 pairs the lists; 0 cuts the rows, 2 the columns of a single x, at `group_list`: the ends of the
    groups, or with group_list_type 1 their sizes. Rows behind the last group, which the device leaves unwritten, are 0.
    """
    of_int8 = x[0].dtype == torch.int8 and weight[0].dtype == torch.int8
    refuse_uses("npu::npu_grouped_matmul", named, _PLAIN | _INT8 if of_int8 else _PLAIN)
    group_type = _BY_PAIRS if named.get("group_type") is None else named["group_type"]
    split_item = named.get("split_item") or 0
    weights = list(weight[0].unbind(0)) if len(weight) == 1 and weight[0].dim() == 3 else list(weight)
    inputs, unwritten = list(x), 0
    token_scales = list(named.get("per_token_scale") or [])
    if group_type not in (_BY_PAIRS, _BY_ROWS, _BY_COLUMNS):
        raise RuntimeError(f"The group type must be -1, 0 or 2, but got {group_type}")
    if len(inputs) == 1 and named.get("group_list") is not None and (group_type != _BY_PAIRS or len(weights) > 1):
        dim = 1 if group_type == _BY_COLUMNS else 0
        sizes = group_sizes(named["group_list"], named.get("group_list_type"))
        inputs, unwritten = _cut(inputs[0], sizes, dim), inputs[0].size(0) - sum(sizes)
        token_scales = _cut(token_scales[0], sizes, 0) if token_scales else []
        if group_type == _BY_COLUMNS and len(weights) == 1:
            weights = _cut(weights[0], sizes, 0)
    elif group_type != _BY_PAIRS and len(inputs) == 1:
        raise RuntimeError("npu_grouped_matmul: group_list is needed to cut a single x")
    if len(inputs) != len(weights):
        raise RuntimeError(f"npu_grouped_matmul: {len(inputs)} groups of x for {len(weights)} weights")
    activation = _activation(named.get("act_type"))
    bias = _per_group(named.get("bias"), len(weights))
    if of_int8:
        if activation:
            raise NoReferenceError("npu::npu_grouped_matmul", "act_type of int8")
        dtype = torch.int8 if named.get("output_dtype") is None else scalar_type(named["output_dtype"])
        scales = _per_group(named.get("scale"), len(weights)), _per_group(token_scales, len(weights))
        groups = zip(inputs, weights, bias, *scales, strict=True)
        products = [_product_of_int8(*group, dtype) for group in groups]
    else:
        products = [_product(*group, activation) for group in zip(inputs, weights, bias, strict=True)]
    if split_item in (0, 1):
        return products
    if group_type == _BY_COLUMNS:
        return [torch.stack(products)]
    return [torch.nn.functional.pad(torch.cat(products), (0, 0, 0, unwritten))]


def _cut(tensor: Tensor, sizes: list[int], dim: int) -> list[Tensor]:
    if sum(sizes) > tensor.size(dim):
        raise RuntimeError(f"npu_grouped_matmul: groups of {sum(sizes)} in a dimension of {tensor.size(dim)}")
    return list(tensor.narrow(dim, 0, sum(sizes)).split(sizes, dim))


def group_sizes(given: Tensor | Sequence[int], list_type: int | None) -> list[int]:
    """The sizes of the groups behind a group_list of type 0 (ends) or 1 (sizes).

    Raises RuntimeError when a size would be negative.
    """
    numbers = given.tolist() if isinstance(given, Tensor) else list(given)
    sizes = numbers if list_type == 1 else [end - start for start, end in zip([0, *numbers[:-1]], numbers, strict=True)]
    if list_type not in (None, 0, 1):
        raise NoReferenceError("npu::npu_grouped_matmul", f"group_list_type {list_type}")
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"group_list must not decrease, but is {numbers}")
    return sizes


def _activation(kind: int | None) -> Callable[[Tensor], Tensor] | None:
    if not kind:
        return None
    if kind not in _ACTIVATIONS:
        raise RuntimeError(f"npu_grouped_matmul: act_type {kind} is not one of 0, 1, 2, 4, 5")
    return _ACTIVATIONS[kind]


def _per_group(given: Sequence[Tensor] | None, groups: int) -> list[Tensor | None]:
    if not given:
        return [None] * groups
    return list(given[0].unbind(0)) if len(given) == 1 and given[0].dim() == 2 else list(given)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None, activation: Callable[[Tensor], Tensor] | None) -> Tensor:
    product = wide(x) @ wide(weight)
    if bias is not None:
        product = product + wide(bias)
    return (product if activation is None else activation(product)).to(x.dtype)


def _product_of_int8(
    x: Tensor, weight: Tensor, bias: Tensor | None, scale: Tensor | None, token_scale: Tensor | None, dtype: torch.dtype
) -> Tensor:
    factor, offset = (None, None) if scale is None else scale_and_offset(scale)
    product = scaled_product(x, weight, bias, (factor, None if token_scale is None else token_scale.unsqueeze(-1)))
    return quantized(product if offset is None or dtype != torch.int8 else product + offset.double(), dtype)


@kernel("npu::npu_grouped_matmul_add_")
def npu_grouped_matmul_add_(
    input: Tensor,
    x: Tensor,
    weight: Tensor,
    group_list: Tensor,
    *,
    transpose_x: bool = True,
    transpose_weight: bool = False,
    group_type: int = _BY_COLUMNS,
    group_list_type: int | None = 0,
) -> Tensor:
    """input += x_iᵀ·w_i for the rows i of each group, as one block of rows after the other (weight gradients)."""
    if not transpose_x or transpose_weight or group_type != _BY_COLUMNS:
        raise NoReferenceError(
            "npu::npu_grouped_matmul_add", f"{transpose_x=}, {transpose_weight=}, {group_type=}; only K-groups"
        )
    sizes = group_sizes(group_list, group_list_type)
    products = [wide(a).T @ wide(b) for a, b in zip(_cut(x, sizes, 0), _cut(weight, sizes, 0), strict=True)]
    return input.add_(torch.stack(products).reshape(input.shape).to(input.dtype))


@kernel("npu::npu_grouped_matmul_add")
def npu_grouped_matmul_add(input: Tensor, x: Tensor, weight: Tensor, group_list: Tensor, **named: Any) -> Tensor:
    """A copy of `input` after npu_grouped_matmul_add_: op-plugin's function writes its argument as well."""
    return npu_grouped_matmul_add_(input, x, weight, group_list, **named).clone()
