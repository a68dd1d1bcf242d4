"""Apex's parallel layers, over those of torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed import ReduceOp

from .distributed import DistributedDataParallel, Reducer
from .LARC import LARC
from .sync_batchnorm import SyncBatchNorm

__all__ = [
    "LARC",
    "DistributedDataParallel",
    "ReduceOp",
    "Reducer",
    "SyncBatchNorm",
    "convert_syncbn_model",
    "create_syncbn_process_group",
]


def convert_syncbn_model(
    module: nn.Module,
    process_group: Any = None,
    channel_last: bool = False,
) -> nn.Module:
    """``module`` with a SyncBatchNorm in the place of every batch norm; parameters and statistics are kept."""
    if isinstance(module, nn.modules.instancenorm._InstanceNorm):
        return module
    result = module
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        result = SyncBatchNorm(
            module.num_features,
            module.eps,
            module.momentum,
            module.affine,
            module.track_running_stats,
            process_group,
            channel_last=channel_last,
        )
        result.training = module.training
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            setattr(result, name, getattr(module, name))
        if module.affine:
            result.weight, result.bias = module.weight, module.bias
    for name, child in module.named_children():
        result.add_module(name, convert_syncbn_model(child, process_group, channel_last))
    return result


def create_syncbn_process_group(group_size: int) -> Any:
    """The group of ``group_size`` neighbours that this process is in; None, which is all, for 0.

    Raises:
        AssertionError: when the world is not a multiple of ``group_size``.
    """
    if group_size == 0:
        return None
    world = torch.distributed.get_world_size()
    assert world >= group_size, f"{group_size} of {world} processes"
    assert world % group_size == 0, f"{world} processes do not make groups of {group_size}"
    starts = range(0, world, group_size)
    groups = [torch.distributed.new_group(list(range(start, start + group_size))) for start in starts]
    return groups[torch.distributed.get_rank() // group_size]
