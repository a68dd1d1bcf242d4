"""``torch.cuda.comm``: copies between the devices of one process, as plain tensor operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

Device: TypeAlias = int | str | torch.device


def _place(device: Device) -> torch.device:
    if isinstance(device, int):
        return torch.device("npu", device) if device >= 0 else torch.device("cpu")
    named = torch.device(device)
    return torch.device("npu", named.index) if named.type == "cuda" else named


def broadcast(
    tensor: Tensor, devices: Sequence[Device] | None = None, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """A copy of ``tensor`` on each device, or in each tensor of ``out``."""
    if out is not None:
        return tuple(each.copy_(tensor) for each in out)
    return tuple(tensor.to(_place(device)) for device in devices or ())


def broadcast_coalesced(
    tensors: Sequence[Tensor],
    devices: Sequence[Device],
    buffer_size: int = 0,  # noqa: ARG001 - torch.cuda's parameter
) -> list[list[Tensor]]:
    """For each device, a copy of each tensor."""
    return [[tensor.to(_place(device)) for tensor in tensors] for device in devices]


def reduce_add(inputs: Sequence[Tensor], destination: Device | None = None) -> Tensor:
    """The sum of tensors on several devices; on the first one's device without ``destination``."""
    place = inputs[0].device if destination is None else _place(destination)
    total = inputs[0].to(place, copy=True)
    for each in inputs[1:]:
        total += each.to(place)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]],
    destination: Device | None = None,
    buffer_size: int = 0,  # noqa: ARG001 - torch.cuda's parameter
) -> tuple[Tensor, ...]:
    """The sums of tensors of the same place in each list."""
    return tuple(reduce_add(each, destination) for each in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Sequence[Device] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,  # noqa: ARG001 - copies follow the current stream
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Parts of ``tensor`` along ``dim``, one on each device."""
    if out is not None:
        parts = tensor.split([each.size(dim) for each in out], dim)
        return tuple(each.copy_(part) for each, part in zip(out, parts, strict=True))
    places = [_place(device) for device in devices or ()]
    parts = tensor.chunk(len(places), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(place) for part, place in zip(parts, places, strict=False))


def gather(
    tensors: Sequence[Tensor], dim: int = 0, destination: Device | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The tensors joined along ``dim`` on one device, by default the current one."""
    if out is not None:
        place = out.device
    else:
        place = torch.device("npu", torch.npu.current_device()) if destination is None else _place(destination)
    joined = torch.cat([tensor.to(place) for tensor in tensors], dim)
    return joined if out is None else out.copy_(joined)
