"""``torch.cuda.nccl``: what programs ask of it. The collectives themselves are HCCL's, through torch.distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["is_available", "unique_id", "version"]


def version() -> tuple[int, int, int]:
    """An NCCL that has all that programs ask for, bfloat16 among it (2.10); HCCL's version is CANN's."""
    return (2, 21, 5)


def is_available(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether collectives in one process can take the tensors: HCCL has a process for each device."""
    return len({tensor.device for tensor in tensors}) <= 1


def unique_id() -> Any:
    """Not on an NPU.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "torch.cuda.nccl.unique_id has no counterpart on an NPU: use torch.distributed with the backend hccl"
    )
