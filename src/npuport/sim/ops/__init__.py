"""Reference kernels of the simulated NPU for operators that have no CPU kernel under the same name.

`npuport.sim.kernels` has put PyTorch's CPU kernels and compositions behind the npu device before; `install()` gives
every operator that is left one of two things: a reference from this package, or a kernel that raises `NoReferenceError`
with the operator's name. Nothing is left that would return unwritten memory.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from npuport.sim import kernels as simulation
from npuport.sim.ops import (  # imported for the kernels they offer
    activations,  # noqa: F401
    attention,  # noqa: F401
    attention_composite,  # noqa: F401
    attention_inference,  # noqa: F401
    attention_merge,  # noqa: F401
    attention_variants,  # noqa: F401
    batch_norm,  # noqa: F401
    box_coding,  # noqa: F401
    box_overlaps,  # noqa: F401
    convolution,  # noqa: F401
    deformable,  # noqa: F401
    dropout,  # noqa: F401
    expert_gating,  # noqa: F401
    expert_permutation,  # noqa: F401
    expert_routing,  # noqa: F401
    float_status,  # noqa: F401
    fused_collectives,  # noqa: F401
    fused_products,  # noqa: F401
    grouped_matmul,  # noqa: F401
    hyper_connections,  # noqa: F401
    indexing,  # noqa: F401
    layout,  # noqa: F401
    losses,  # noqa: F401
    matrix,  # noqa: F401
    normalization,  # noqa: F401
    optimizers,  # noqa: F401
    quantization,  # noqa: F401
    quantized_products,  # noqa: F401
    recurrent,  # noqa: F401
    recurrent_layers,  # noqa: F401
    regions,  # noqa: F401
    rotary,  # noqa: F401
    rotary_cache,  # noqa: F401
    rotated_boxes,  # noqa: F401
    scaled_products,  # noqa: F401
    scattering,  # noqa: F401
    sequence_windows,  # noqa: F401
    sparse,  # noqa: F401
    spectral,  # noqa: F401
    suppression,  # noqa: F401
    vocabulary_loss,  # noqa: F401
)
from npuport.sim.ops.registration import FORWARD, registered
from npuport.sim.ops.unavailable import NoReferenceError, refuse

__all__ = ["Installed", "NoReferenceError", "install"]

# torch_npu's own code: it moves storage, sets hooks for graphs, or only decides which other operators to call.
_KEEP = frozenset(
    {
        "aten::_copy_from_and_resize",
        "npu::dropout_with_byte_mask",
        "npu::get_npu_format",
        "npu::get_storage_size",
        "npu::npu_change_data_ptr",
        "npu::npu_ciou",
        "npu::npu_moe_token_unpermute",
        "npu::npu_moe_token_unpermute_with_routing_map",
        "npu::print_npugraph_tensor",
        "npu::save_npugraph_tensor",
        "npu::save_npugraph_tensor.tensor_list",
        "npu::set_op_timeout_ms",
        "npu::super_kernel_scope_begin",
        "npu::super_kernel_scope_end",
    }
)


@dataclass(frozen=True)
class Installed:
    """Operators by what they got, each tuple sorted."""

    references: tuple[str, ...]
    refused: tuple[str, ...]


@functools.cache
def install() -> Installed:
    """Register everything, once, after `npuport.sim.kernels.install()`."""
    kernels = registered()
    libraries = {name: torch.library.Library(name, "IMPL") for name in ("aten", "npu")}
    _kept_alive.extend(libraries.values())

    def register(operator: str, function: Callable[..., Any], key: str) -> None:
        namespace, _, name = operator.partition("::")
        libraries[namespace].impl(name, function, key, allow_override=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overriding torch_npu's kernels is the purpose
        for k in kernels:
            register(k.operator, k.callable(), k.key)
        refused = tuple(name for name in simulation.missing() if name not in _KEEP)
        for name in refused:
            register(name, refuse(name), FORWARD)
    return Installed(tuple(sorted({k.operator for k in kernels})), refused)


_kept_alive: list[torch.library.Library] = []  # the dispatcher forgets kernels whose library is gone
