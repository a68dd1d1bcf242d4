"""How far two tensors are apart, told from four numbers of each.

Noise on each value moves the largest and the smallest value by that noise, and the norm and the mean by the noise over
the root of the number of values.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

from npuport.precision.operators.agreement import ROUNDING, limit_of
from npuport.precision.operators.statistics import Statistics


def apart_by_statistics(a: Statistics, b: Statistics, count: int, is_floating: bool) -> float:
    """How far apart two tensors of ``count`` values are at least, as a share of their size; of whole numbers 1 where
    they differ."""
    if a.checksum is not None and a.checksum == b.checksum:
        return 0.0
    if is_floating:
        return max(_relative(a, b, count), default=0.0)
    same = all(x == y or math.isnan(x) for x, y in zip(_numbers(a), _numbers(b), strict=True))
    return 0.0 if same and (a.checksum is None or b.checksum is None) else 1.0


def _numbers(one: Statistics) -> tuple[float, ...]:
    return one.max, one.min, one.mean, one.norm


def _relative(a: Statistics, b: Statistics, count: int) -> Iterator[float]:
    """How far norm, mean, largest and smallest value are apart: the norm as a share of itself, the mean of the root
    mean square, the others of the larger of the two."""
    norm = max(a.norm, b.norm)
    if norm > 0:
        yield abs(a.norm - b.norm) / norm
    size = norm / math.sqrt(count) if count and norm > 0 else 0.0
    if size and not math.isnan(a.mean) and not math.isnan(b.mean):
        yield abs(a.mean - b.mean) / size
    for x, y in ((a.max, b.max), (a.min, b.min)):
        scale = max(abs(x), abs(y), 0.1 * size)
        if scale > 0:  # and no NaN
            yield abs(x - y) / scale


def level_of(a: Statistics, b: Statistics, count: int, dtype: str) -> float:
    """The noise on one value, as a share of it, that two tensors of ``count`` values differ by; NaN where nothing is
    known."""
    if is_saturated(a, dtype) or (math.isnan(a.max) and math.isnan(b.max)):
        return math.nan
    if a.checksum is not None and a.checksum == b.checksum:
        return 0.0
    root = math.sqrt(count)
    values = list(_relative(a, b, count))
    if not values:
        return math.nan
    if max(a.norm, b.norm) > 0:  # norm and mean come first; what their own rounding makes is none of the tensor's
        own = _resolution(a.norm, b.norm, dtype)
        means = 2 if not math.isnan(a.mean + b.mean) else 1
        values = [max(value - own, 0.0) * root for value in values[:means]] + values[means:]
    return max(values)


def is_saturated(one: Statistics, dtype: str) -> bool:
    """Whether there are values as large as the dtype holds, beside which no other counts in the norm."""
    return max(abs(one.max), abs(one.min)) > limit_of(dtype)


def _resolution(one: float, other: float, dtype: str) -> float:
    """The rounding that two norms may differ by: some tools compute them in bfloat16 for a tensor of that."""
    is_half = dtype in ("bfloat16", "float16") and _is_short(one) and _is_short(other)
    return ROUNDING[dtype] if is_half else 4 * ROUNDING["float32"]


def _is_short(value: float) -> bool:
    try:
        return struct.pack(">f", value)[2:] == b"\0\0"
    except OverflowError:
        return False
