"""Chips that saturate: a computation that overflows gives the largest finite number, NaN becomes 0, and a flag is set.

Source: torch_npu's documents on INF_NAN_MODE_ENABLE ("±MAX", "0") and npu_check_overflow (the flag). Which mode holds,
torch_npu decides by chip and environment. What only moves numbers keeps them.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

# aten operators that write numbers they were given.
_MOVING = (
    "_copy_from", "_foreach_copy", "_foreach_copy_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put", "cat",
    "clone", "constant_pad_nd", "diag_embed", "empty_like", "expand_copy", "fill", "fill_", "flip", "full",
    "full_like", "gather", "index", "index_fill", "index_fill_", "index_put", "index_put_", "index_select",
    "masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_", "masked_select", "permute_copy", "put_",
    "reflection_pad1d", "reflection_pad2d", "repeat", "replication_pad1d", "replication_pad2d", "roll", "scatter",
    "scatter_", "slice_scatter", "sort", "split_with_sizes_copy", "stack", "take", "topk", "tril", "tril_", "triu",
    "triu_", "unfold_copy", "view_copy", "where",
)  # fmt: skip


@functools.cache
def saturates() -> bool:
    """Whether torch_npu has this device saturate."""
    import torch_npu

    try:
        return not torch_npu.npu.utils.is_support_inf_nan()
    except RuntimeError:
        return False  # the environment contradicts the chip; torch_npu says so when the device is first used


def install() -> None:
    """Have the kernels saturate, where the device does: from its first use on, for asking torch_npu initialises it."""
    import torch_npu

    torch_npu.npu._lazy_call(_start)


def _start() -> None:
    import torch

    if saturates():
        torch.ops.npuport_sim.start_saturation([f"aten::{name}" for name in _MOVING])
        _register_check_of_gradients()


def saturate(result: Any, device: Any) -> None:
    """Saturate what a reference kernel computed for ``device`` (None: for none), before it is handed over."""
    import torch

    if isinstance(result, torch.Tensor):
        if device is not None and result.device.type == "cpu" and not result.is_conj():
            torch.ops.npuport_sim.saturate(result, device.index or 0)
    elif isinstance(result, (list, tuple)):
        for item in result:
            saturate(item, device)


def take_overflow_flag(device: int, *, clear: bool) -> bool:
    """Whether a computation of the device has overflowed since the flag was last cleared."""
    import torch

    return bool(torch.ops.npuport_sim.take_overflow_flag(device, clear))


def _register_check_of_gradients() -> None:
    """The operator under GradScaler asks the flag in place of the gradients, and leaves them as they are if it is set.

    As AmpForeachNonFiniteCheckAndUnscaleKernelNpu.cpp of op-plugin.
    """
    import torch

    library = torch.library.Library("aten", "IMPL")
    _kept_alive.append(library)
    name = "_amp_foreach_non_finite_check_and_unscale_"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overriding is the purpose
        library.impl(name, _check_and_unscale, "PrivateUse1", allow_override=True)


_kept_alive: list[Any] = []  # the dispatcher forgets kernels whose library is gone


def _check_and_unscale(grads: Sequence[Any], found_inf: Any, inv_scale: Any) -> None:
    if not grads:
        return
    if any(grad.dtype != grads[0].dtype for grad in grads):
        raise RuntimeError("scaled_grads must have the same dtype")
    if take_overflow_flag(found_inf.device.index, clear=True):
        found_inf.add_(1)
        return
    for grad in grads:
        grad.mul_(inv_scale)
