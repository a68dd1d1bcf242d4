"""Statistics of a recorded tensor: what tells two runs apart when the tensors themselves were not kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a tensor's values; of a complex tensor its real and imaginary parts are the values, and a bool is
    0 or 1.

    - ``max``, ``min``, ``mean``: of the finite values; NaN where there is none.
    - ``norm``: the root of the sum of the squares of the finite values; 0 where there is none.
    - ``nans``, ``infs``: how many values are NaN, and how many infinite (of either sign).
    - ``checksum``: of the bits in the order of the values (see ``checksum_of``); None where it was not asked for.
    """

    max: float
    min: float
    mean: float
    norm: float
    nans: int
    infs: int
    checksum: int | None = None


def statistics_of(tensor: torch.Tensor) -> Statistics:
    """The statistics of a tensor on the CPU, with its checksum."""
    import torch

    values = (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).double()
    finite = values[torch.isfinite(values)]
    nans = int(torch.isnan(values).sum())
    infs = values.numel() - finite.numel() - nans
    checksum = checksum_of(tensor)
    if not finite.numel():
        return Statistics(float("nan"), float("nan"), float("nan"), 0.0, nans, infs, checksum)
    norm = float(torch.linalg.vector_norm(finite))
    return Statistics(float(finite.max()), float(finite.min()), float(finite.mean()), norm, nans, infs, checksum)


def checksum_of(tensor: torch.Tensor) -> int:
    """A checksum of a tensor's bits: CRC-32 of its bytes in the order of its values."""
    import zlib

    import torch

    plain = tensor.detach().contiguous().resolve_conj().resolve_neg()
    return zlib.crc32(plain.reshape(-1).view(torch.uint8).numpy().data)
