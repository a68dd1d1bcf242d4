"""What is kept of the tensors of a step: the tensors themselves, or statistics of them."""

from __future__ import annotations

from typing import Protocol

import torch

from npuport.precision.operators.calls import Plain
from npuport.precision.operators.summing import Awaited, is_dense

Kept = tuple[dict[int, torch.Tensor], list[tuple[Plain, Plain]]]
"""(storages by number, statistics with their references), as a step's file has them."""


class Keeper(Protocol):
    """Is shown each storage when it is first used or has been written, and each view of it once."""

    def storage(self, number: int, tensor: torch.Tensor) -> None: ...

    def view(self, ref: Plain, tensor: torch.Tensor) -> None: ...

    def take(self) -> Kept:
        """What was kept since the last time."""


class Tensors:
    """Keeps the storages, each as its bytes on the CPU."""

    def __init__(self) -> None:
        self._storages: dict[int, torch.Tensor] = {}

    def storage(self, number: int, tensor: torch.Tensor) -> None:
        whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
        self._storages[number] = whole.to("cpu", copy=True)

    def view(self, ref: Plain, tensor: torch.Tensor) -> None:
        """A view is told by its storage."""

    def take(self) -> Kept:
        taken, self._storages = self._storages, {}
        return taken, []


class Summaries:
    """Keeps statistics; those of views that hold the same values in the same memory are computed once.

    Statistics of tensors on a device are computed there and fetched together, so that a step waits for them once.
    """

    def __init__(self, *, with_checksum: bool = False) -> None:
        self._awaited = Awaited(with_checksum=with_checksum)
        self._views: list[tuple[Plain, object]] = []
        self._known: set[object] = set()

    def storage(self, number: int, tensor: torch.Tensor) -> None:
        """A storage is told by its views."""

    def view(self, ref: Plain, tensor: torch.Tensor) -> None:
        _, number, dtype, shape, stride, offset = ref
        is_one_stretch = tensor.is_contiguous() or is_dense(shape, stride)
        key = (number, dtype, offset, tensor.numel()) if is_one_stretch else ref
        self._views.append((ref, key))
        if key not in self._known:
            self._known.add(key)
            self._awaited.add(key, tensor)

    def take(self) -> Kept:
        known = {key: one.values() for key, one in self._awaited.fetch().items()}
        taken = [(ref, known[key]) for ref, key in self._views]
        self._views, self._known = [], set()
        return {}, taken
