"""Computing statistics: of one tensor at once, or of a step's tensors on their device without waiting for each."""

from __future__ import annotations

import math
from typing import Any

import torch

from npuport.precision.operators.checksums import checksums_of
from npuport.precision.operators.statistics import Statistics

_WIDE = {torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64}
_SMALL = 4096  # values: tensors up to this size are copied and computed together with others of their size
_CACHED = 2**20  # values: what is read four times should stay in the processor's cache
_STRETCH = 2**14  # values
_HELD = 64 * 2**20  # bytes of copies that may wait to be computed


def statistics_of(tensor: torch.Tensor, *, with_checksum: bool = False) -> Statistics:
    """The statistics of a strided tensor, which may be empty; waits for its device."""
    values = values_of(tensor)
    checksum = int(checksums_of(values.reshape(1, -1).contiguous())[0]) if with_checksum else None
    size = values.numel()
    if not size:
        return _statistics([], 0, checksum)
    values = _computable(values)
    highs, lows, sums, norms = [], [], [], []
    for part in values.split(_CACHED) if size > _CACHED else (values,):
        highs.append(part.amax().item())
        lows.append(part.amin().item())
        sums.append(_sum(part).item())
        norms += _norms(part)
    # NaN comes through, so that this tells whether all is finite; most tensors are.
    if not math.isfinite(sum(highs) + sum(lows)):
        reduced = _not_all_finite(values, math.isnan(sum(highs)))
        return _statistics([one.item() for one in reduced], size, checksum)
    total, norm = sum(sums), math.hypot(*norms)
    if not (math.isfinite(total) and math.isfinite(norm)):  # beyond the range of float32
        total, norm = values.double().sum().item(), values.double().norm().item()
    return Statistics(float(max(highs)), float(min(lows)), total / size, norm, 0, 0, checksum)


class Awaited:
    """Statistics of the tensors of a step. A device computes them while the program goes on, and is waited for once.

    Small tensors are copied and computed together: a training step has hundreds of them, and what an operator costs to
    call is then more than what it computes.
    """

    def __init__(self, *, with_checksum: bool = False) -> None:
        self._with_checksum = with_checksum
        self._waiting: dict[tuple[Any, ...], tuple[list[Any], list[torch.Tensor]]] = {}
        self._bytes = 0
        self._computed: list[tuple[list[Any], int, tuple[torch.Tensor, ...]]] = []
        self._known: dict[Any, Statistics] = {}

    def add(self, key: Any, tensor: torch.Tensor) -> None:
        """Have the statistics of a tensor computed, which may be written as soon as this returns."""
        size = tensor.numel()
        if 0 < size <= _SMALL:
            like = (None if tensor.is_cpu else tensor.device, tensor.dtype, size)
            waiting = self._waiting.get(like)
            if waiting is None:
                waiting = self._waiting[like] = ([], [])
            waiting[0].append(key)
            waiting[1].append(values_of(tensor).clone())
            self._bytes += size * tensor.element_size()
            if self._bytes > _HELD:
                self._compute()
        elif tensor.is_cpu or not size:
            self._known[key] = statistics_of(tensor, with_checksum=self._with_checksum)
        else:
            self._reduce([key], values_of(tensor).view(1, -1))

    def fetch(self) -> dict[Any, Statistics]:
        """The statistics of all tensors, by their keys."""
        self._compute()
        known, self._known = self._known, {}
        words = iter(_together([one for _, _, results in self._computed for one in results]))
        for keys, size, results in self._computed:
            columns = [next(words) for _ in results]
            checksums = columns.pop() if self._with_checksum else [None] * len(keys)
            for row, key in enumerate(keys):
                known[key] = _statistics([column[row] for column in columns], size, checksums[row])
        self._computed = []
        return known

    def _compute(self) -> None:
        """Compute those that wait."""
        for keys, copies in self._waiting.values():
            rows = torch.stack(copies)
            if rows.is_cpu:
                self._known.update(zip(keys, _of_rows_here(rows, self._with_checksum), strict=True))
            else:
                self._reduce(keys, rows)
        self._waiting, self._bytes = {}, 0

    def _reduce(self, keys: list[Any], rows: torch.Tensor) -> None:
        checksums = (checksums_of(rows),) if self._with_checksum else ()
        self._computed.append((keys, rows.shape[1], _of_rows(_computable(rows)) + checksums))


def values_of(tensor: torch.Tensor) -> torch.Tensor:
    """The values of a strided tensor in one dimension: those of a dense one as they lie in memory, without a copy."""
    if tensor.dtype.is_complex:
        tensor = torch.view_as_real(tensor.resolve_conj().resolve_neg())
    elif tensor.is_neg():
        tensor = tensor.resolve_neg()
    if tensor.is_contiguous():
        return tensor if tensor.dim() == 1 else tensor.view(-1)
    if is_dense(tuple(tensor.shape), tensor.stride()):
        return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())
    return tensor.reshape(-1)


def is_dense(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether a tensor fills its stretch of memory, each place once, in whatever order of its dimensions."""
    expected = 1
    for step, size in sorted((step, size) for step, size in zip(stride, shape, strict=True) if size != 1):
        if step != expected:
            return 0 in shape
        expected *= size
    return True


def _computable(values: torch.Tensor) -> torch.Tensor:
    """Values in a dtype that every device has these operators for: wider for those that are only stored."""
    if values.dtype in _WIDE:
        return values
    if values.dtype.is_floating_point:
        return values.float()  # float8
    return values.long() if values.dtype in (torch.uint16, torch.uint32, torch.uint64) else values.int()


def _sum(values: torch.Tensor) -> torch.Tensor:
    if values.dtype == torch.float32 or not values.is_floating_point():
        return values.sum(-1)
    return values.sum(-1, dtype=torch.float64 if values.dtype == torch.float64 else torch.float32)


def _norm(values: torch.Tensor) -> torch.Tensor:
    if values.dtype == torch.float32:
        return torch.linalg.vector_norm(values, dim=-1)
    if not values.is_floating_point():
        values = values.float()
    dtype = torch.float64 if values.dtype == torch.float64 else torch.float32
    return torch.linalg.vector_norm(values, dim=-1, dtype=dtype)


def _norms(values: torch.Tensor) -> list[float]:
    """The norms of stretches of values of one dimension: a sum in float32 over more of them is too far off."""
    whole = values.numel() // _STRETCH * _STRETCH
    if whole in (0, values.numel()):
        return list(_norm(values.view(-1, _STRETCH) if whole else values.view(1, -1)).tolist())
    return _norms(values[:whole]) + _norms(values[whole:])


def _of_rows_here(rows: torch.Tensor, with_checksum: bool) -> list[Statistics]:
    """The statistics of each row on the CPU, where to look at the results is no waiting: most rows are finite."""
    values, size = _computable(rows), rows.shape[1]
    checksums = checksums_of(rows).tolist() if with_checksum else [None] * len(rows)
    columns = [column.tolist() for column in (values.amax(1), values.amin(1), _sum(values), _norm(values))]
    return [
        Statistics(float(high), float(low), total / size, norm, 0, 0, checksum)
        if math.isfinite(high + low) and math.isfinite(total) and math.isfinite(norm)
        else statistics_of(rows[row], with_checksum=with_checksum)
        for row, (high, low, total, norm, checksum) in enumerate(zip(*columns, checksums, strict=True))
    ]


def _of_rows(rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """(max, min, sum, norm) of each row and, of floating values, (finite values, values that are no NaN)."""
    if not rows.is_floating_point():
        return rows.amax(1), rows.amin(1), _sum(rows), _norm(rows)
    largest = torch.finfo(rows.dtype).max
    high = rows.nan_to_num(-largest, -largest, -largest).amax(1)
    low = rows.nan_to_num(largest, largest, largest).amin(1)
    # What is not finite is NaN once it is subtracted from itself.
    counts = ((rows - rows) == 0).sum(1), torch.eq(rows, rows).sum(1)
    finite = rows.nan_to_num(0.0, 0.0, 0.0)
    return high, low, _sum(finite), _norm(finite), *counts


def _not_all_finite(values: torch.Tensor, has_nan: bool) -> tuple[torch.Tensor, ...]:
    """The same as ``_of_rows`` of one row; on a CPU comparing takes longest."""
    largest = torch.finfo(values.dtype).max
    wide = torch.float64 if values.numel() > 2**24 else torch.float32  # counts exactly
    broken = (values - values).nan_to_num_(1.0).sum(dtype=wide)
    nans = torch.ne(values, values).sum() if has_nan else torch.tensor(0)
    high = values.nan_to_num(-largest, -largest, -largest).amax()
    low = values.nan_to_num(largest, largest, largest).amin()
    finite = values.nan_to_num(0.0, 0.0, 0.0)
    return high, low, _sum(finite), _norm(finite), values.numel() - broken, values.numel() - nans


def _statistics(reduced: list[Any], size: int, checksum: int | None) -> Statistics:
    """Of what ``_of_rows`` gives for one row of ``size`` values."""
    if not size:
        return Statistics(math.nan, math.nan, math.nan, 0.0, 0, 0, checksum)
    high, low, total, norm = reduced[:4]
    finite, numbers = reduced[4:] or (size, size)
    if not finite:
        high = low = total = math.nan
    nans, infs = size - int(numbers), int(numbers) - int(finite)
    return Statistics(float(high), float(low), total / max(finite, 1), norm, nans, infs, checksum)


def _together(results: list[torch.Tensor]) -> list[list[Any]]:
    """The values of tensors of one dimension, fetched from each device with one copy."""
    values: list[list[Any]] = [[] for _ in results]
    groups: dict[torch.device, dict[torch.dtype, list[int]]] = {}
    for place, result in enumerate(results):
        groups.setdefault(result.device, {}).setdefault(result.dtype, []).append(place)
    for of_dtype in groups.values():
        packed = [torch.cat([results[place] for place in places]).view(torch.uint8) for places in of_dtype.values()]
        fetched = torch.cat(packed).cpu().split([whole.numel() for whole in packed])
        for (dtype, places), part in zip(of_dtype.items(), fetched, strict=True):
            # A copy, for memory of another dtype must be aligned to it.
            parts = part.clone().view(dtype).split([results[place].numel() for place in places])
            for place, one in zip(places, parts, strict=True):
                values[place] = one.tolist()
    return values
