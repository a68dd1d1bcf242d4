"""What ``amp.initialize`` was told, for the whole process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from .options import Properties
from .scaler import LossScaler


@dataclass
class AmpState:
    """Apex's global state; scripts read ``loss_scalers`` and ``opt_properties`` of it."""

    opt_properties: Properties | None = None
    loss_scalers: list[LossScaler] = field(default_factory=list)
    verbosity: int = 1
    min_loss_scale: float | None = None
    max_loss_scale: float = 2.0**24
    allow_incoming_model_not_fp32: bool = False


_amp_state = AmpState()


def maybe_print(message: str) -> None:
    """Print on the first process, unless ``verbosity`` is 0."""
    import torch.distributed as dist

    if _amp_state.verbosity > 0 and not (dist.is_available() and dist.is_initialized() and dist.get_rank() != 0):
        print(message)


def master_params(optimizer: Any) -> Iterator[Tensor]:
    """The parameters that ``optimizer`` steps, which are master weights where there are any."""
    for group in optimizer.param_groups:
        yield from group["params"]
