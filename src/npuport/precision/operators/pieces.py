"""What two tensors differ by, piece by piece: what is computed of a piece stays in a processor's cache, and needs no
memory of the size of a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

_VALUES = 2**17  # of a piece: 1 MiB in float64


class Piece(NamedTuple):
    """Values in float64, and how far others are from them. Both are zero where either is not finite. ``of_values`` and
    ``of_difference`` are sums of squares; ``finite`` counts values that are finite in both, ``broken`` those that are
    in one of them only, or infinite with the other sign."""

    values: torch.Tensor
    difference: torch.Tensor
    of_values: float
    of_difference: float
    finite: int
    broken: int


def pieces(one: torch.Tensor, other: torch.Tensor, limit: float) -> Iterator[Piece]:
    """The pieces of a tensor, and how far those of another of the same shape are from them. From ``limit`` on a value
    counts as infinite; of a complex tensor the parts count as values of their own."""
    import torch

    for a, b in zip(*(flat.split(_VALUES) for flat in _in_one_order(one, other)), strict=True):
        values, others = a.double(), b.double()
        difference = torch.sub(others, values)
        squares = float(values.dot(values)), float(difference.dot(difference))
        # No value is larger than the root of the sum of all squares, which a NaN or an infinity does not leave finite.
        if math.sqrt(squares[0]) + math.sqrt(squares[1]) < limit:
            yield Piece(values, difference, *squares, values.numel(), 0)
        else:
            yield _finite_part(values, others, limit)


def _finite_part(one: torch.Tensor, other: torch.Tensor, limit: float) -> Piece:
    import torch

    one, other = _up_to(limit, one), _up_to(limit, other)
    finite = torch.isfinite(one) & torch.isfinite(other)
    same = (one == other) | (torch.isnan(one) & torch.isnan(other))
    values = one.masked_fill(~finite, 0.0)
    difference = torch.sub(other, one).masked_fill_(~finite, 0.0)
    squares = float(values.dot(values)), float(difference.dot(difference))
    return Piece(values, difference, *squares, int(finite.sum()), int((~finite & ~same).sum()))


def square_of(tensor: torch.Tensor, limit: float) -> float:
    """The sum of the squares of the values that are finite and below a limit."""
    import torch

    total = 0.0
    for part in _in_one_order(tensor)[0].split(_VALUES):
        values = part.double()
        square = float(values.dot(values))
        if not math.sqrt(square) < limit:
            square = float(torch.where(values.abs() < limit, values, 0.0).square().sum())
        total += square
    return total


def _up_to(limit: float, values: torch.Tensor) -> torch.Tensor:
    """Values, with infinities for those from a limit on."""
    import torch

    return torch.where(values.abs() < limit, values, values.sign() * math.inf)


def _in_one_order(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Tensors of one shape in one dimension, with the values of a place at the same place: without a copy where they
    lie in memory alike."""
    import torch

    from npuport.precision.operators.summing import is_dense

    if any(one.is_complex() for one in tensors):
        tensors = tuple(torch.view_as_real(one.to(torch.complex128).resolve_conj()) for one in tensors)
    first = tensors[0]
    if all(one.is_contiguous() for one in tensors):
        return tuple(one.view(-1) for one in tensors)
    is_alike = all(one.shape == first.shape and one.stride() == first.stride() for one in tensors)
    if is_alike and is_dense(tuple(first.shape), first.stride()):
        return tuple(one.as_strided((one.numel(),), (1,), one.storage_offset()) for one in tensors)
    return tuple(one.flatten() for one in tensors)
