"""Matrix products fused with a collective of the process group they name.

Source: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_mm_all_reduce_base.md, …-npu_all_gather_base_mm.md,
…-npu_mm_reduce_scatter_base.md. Of quantised uses, only that of int8 in the last has a reference.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from npuport.sim.ops.layout import scalar_type
from npuport.sim.ops.quantization import scale_and_offset
from npuport.sim.ops.quantized_products import scaled_product
from npuport.sim.ops.registration import cpu_view, kernel, to_npu
from npuport.sim.ops.unavailable import NoReferenceError, refuse_uses

_PLAIN = {"comm_turn", "comm_mode", "bias", "x3", "reduce_op", "gather_index", "gather_output", "antiquant_group_size"}

_INT8 = ("x1_scale", "x2_scale", "output_dtype")


def _group(hcom: str) -> dist.ProcessGroup:
    """The process group whose HCCL communicator is called `hcom`."""
    for group in dist.distributed_c10d._world.pg_map:
        backend = group._get_backend(torch.device("npu"))
        if backend.get_hccl_comm_name(dist.get_rank()) == hcom:
            return group
    raise RuntimeError(f"no process group of this process has a HCCL communicator called {hcom!r}")


def _refuse_quantised(operator: str, named: dict[str, Any]) -> None:
    refuse_uses(operator, named, _PLAIN)
    if named.get("reduce_op", "sum") != "sum":
        raise NoReferenceError(operator, f"reduce_op {named['reduce_op']}")


def _product(x1: Tensor, x2: Tensor, bias: Tensor | None) -> Tensor:
    product = (
        (x1.float() @ x2.float()) if bias is None else torch.addmm(bias.float(), x1.flatten(0, -2).float(), x2.float())
    )
    return product.view(*x1.shape[:-1], x2.size(-1)).to(x1.dtype)


def _product_of_int8(
    x1: Tensor, x2: Tensor, x1_scale: Tensor | None, x2_scale: Tensor | None, output_dtype: int | torch.dtype | None
) -> Tensor:
    scales = [
        None if scale is None else scale_and_offset(cpu_view(scale))[0].reshape(shape)
        for scale, shape in ((x1_scale, (-1, 1)), (x2_scale, (1, -1)))
    ]
    product = scaled_product(cpu_view(x1), cpu_view(x2), None, scales)
    return to_npu(product.to(torch.bfloat16 if output_dtype is None else scalar_type(output_dtype)), x1.device)


@kernel("npu::npu_mm_all_reduce_base", lend=False)
def npu_mm_all_reduce_base(x1: Tensor, x2: Tensor, hcom: str, **named: Any) -> Tensor:
    """The sum over the ranks of x1·x2 + bias + x3."""
    _refuse_quantised("npu::npu_mm_all_reduce_base", named)
    product = _product(x1, x2, named.get("bias"))
    if named.get("x3") is not None:
        product = product + named["x3"]
    dist.all_reduce(product, group=_group(hcom))
    return product


@kernel("npu::npu_all_gather_base_mm", lend=False)
def npu_all_gather_base_mm(
    input: Tensor, x2: Tensor, hcom: str, world_size: int, **named: Any
) -> tuple[Tensor, Tensor]:
    """(rows of all ranks · x2 + bias, the gathered rows, empty unless gather_output)."""
    operator = "npu::npu_all_gather_base_mm"
    _refuse_quantised(operator, named)
    if named.get("gather_index"):
        raise NoReferenceError(operator, "gather_index other than 0, documented as unsupported")
    gathered = input.new_empty(world_size * input.size(0), *input.shape[1:])
    dist.all_gather_into_tensor(gathered, input.contiguous(), group=_group(hcom))
    shown = gathered if named.get("gather_output", True) else gathered.new_empty(0)
    return _product(gathered, x2, named.get("bias")), shown


@kernel("npu::npu_mm_reduce_scatter_base", lend=False)
def npu_mm_reduce_scatter_base(input: Tensor, x2: Tensor, hcom: str, world_size: int, **named: Any) -> Tensor:
    """This rank's rows of the sum over the ranks of input·x2 + bias, of int8 input·x2·x1_scale·x2_scale."""
    operator = "npu::npu_mm_reduce_scatter_base"
    of_int8 = input.dtype == torch.int8 and named.get("x2_scale") is not None and named.get("bias") is None
    scaling = {name: named.pop(name, None) for name in _INT8} if of_int8 else {}
    _refuse_quantised(operator, named)
    product = _product_of_int8(input, x2, **scaling) if of_int8 else _product(input, x2, named.get("bias"))
    part = product.new_empty(product.size(0) // world_size, product.size(1))
    dist.reduce_scatter_tensor(part, product, group=_group(hcom))
    return part
