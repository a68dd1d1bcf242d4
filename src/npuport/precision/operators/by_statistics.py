"""Which calls of a run are wrong, told from statistics of their inputs and outputs alone.

A call cannot be replayed from statistics. What is left is to ask of each call whether its results are further apart
between the two runs than its inputs are, by more than other calls of the pair show. How far apart is read from four
numbers: noise on each value moves the largest and the smallest value by the noise, and the norm and the mean by the
noise over the root of the number of values.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import ROUNDING, Agreement, limit_of
from npuport.precision.operators.alignment import Alignment, align
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.statistics import Statistics
from npuport.precision.operators.suspects import (
    Comparison,
    Suspect,
    one_for_each_call,
    other_arguments,
    other_operators,
    other_sources,
)

_SUSPICIOUS = 3.0  # of the logarithm of how much further apart a result is than inputs, above what is usual
_ENOUGH = 8  # calls of an operator that tell what is usual for it
# A reduction may leave next to nothing of what it adds up, and that is rounding: results smaller than this share of the
# smallest input count as that large.
_CANCELLED = 0.03
_NOTE = say("Compared by statistics alone, which see large errors only; recorded tensors tell more.")


def compare_statistics(reference: Step, candidate: Step) -> Comparison:
    """Find the calls of a step that break the numbers from the statistics of their tensors."""
    alignment = align(reference.calls, candidate.calls)
    distances = _Distances(reference, candidate)
    agreement = Agreement(alignment, distances.apart)
    measured = _measured(alignment, distances)
    found = [
        *other_operators(alignment, agreement),
        *other_arguments(alignment),
        *other_sources(alignment, reference, candidate, distances.apart),
        *_not_finite(alignment, distances),
        *_own_errors(measured),
    ]
    ordered = sorted(one_for_each_call(found), key=lambda one: (-one.score, one.call.index))
    noise = math.exp(median(one.growth for one in measured)) if measured else 1.0
    return Comparison(tuple(ordered), len(candidate.calls), 0, noise, agreement.random, (_NOTE,))


@dataclass(frozen=True)
class _Measured:
    """A floating result, how far apart it is, and how far apart the inputs of its call are (as noise of one value)."""

    call: Call
    before: float
    after: float

    @property
    def growth(self) -> float:
        return math.log(self.after / self.before)


class _Distances:
    """How far the tensors of two steps are apart, each pair looked up once."""

    def __init__(self, reference: Step, candidate: Step) -> None:
        self._reference, self._candidate = reference, candidate
        self._levels: dict[tuple[TensorRef, TensorRef], float] = {}

    def statistics(self, one: TensorRef, other: TensorRef) -> tuple[Statistics | None, Statistics | None]:
        return self._reference.statistics_of(one), self._candidate.statistics_of(other)

    def level(self, one: TensorRef, other: TensorRef) -> float:
        """The noise on one value, as a share of it, that two tensors differ by; NaN where nothing is known."""
        key = one, other
        found = self._levels.get(key)
        if found is None:
            a, b = self.statistics(one, other)
            if a is None or b is None or _is_saturated(a, one.dtype):
                found = math.nan
            else:
                found = _level(a, b, math.prod(one.shape), one.dtype)
            self._levels[key] = found
        return found

    def inputs(self, one: Call, other: Call) -> float:
        """How far the inputs of a call are apart."""
        pairs = ((a, b) for a, b in zip(one.inputs, other.inputs, strict=False) if a.shape == b.shape)
        return max((level for a, b in pairs if not math.isnan(level := self.level(a, b))), default=0.0)

    def results(self, one: Call, other: Call) -> Iterator[float]:
        """How far each floating result of a call is apart: at least as rounding makes it."""
        for a, b in zip(one.outputs, other.outputs, strict=False):
            if a.shape == b.shape and a.dtype in ROUNDING and b.dtype in ROUNDING:
                level = self.level(a, b) * self._counting(one, a)
                if not math.isnan(level):
                    yield max(level, ROUNDING[a.dtype], ROUNDING[b.dtype])

    def _counting(self, call: Call, result: TensorRef) -> float:
        """The share of its size at which a result of the reference counts: below 1 where a reduction left little."""
        count = math.prod(result.shape)
        made = self._reference.statistics_of(result)
        if made is None or all(math.prod(ref.shape) <= count for ref in call.inputs):
            return 1.0
        norms = [found.norm for ref in call.inputs if ref.dtype in ROUNDING
                 if (found := self._reference.statistics_of(ref)) is not None and found.norm > 0]  # fmt: skip
        least = _CANCELLED * min(norms, default=0.0)
        return made.norm / least if 0 < made.norm < least else 1.0

    def apart(self, one: TensorRef, other: TensorRef) -> float:
        """How far apart two tensors are at least, as a share of their size; of whole numbers 1 where they differ."""
        if one.shape != other.shape:
            return 1.0
        a, b = self.statistics(one, other)
        if a is None or b is None or (a.checksum is not None and a.checksum == b.checksum):
            return 0.0
        if one.dtype in ROUNDING and other.dtype in ROUNDING:
            return max(_relative(a, b, math.prod(one.shape)), default=0.0)
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


def _level(a: Statistics, b: Statistics, count: int, dtype: str) -> float:
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


def _is_saturated(one: Statistics, dtype: str) -> bool:
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


def _measured(alignment: Alignment, distances: _Distances) -> list[_Measured]:
    """Each call's result that is furthest apart for what its inputs are.

    Inputs count as apart at least as a result is that a healthy call makes from equal inputs (the least of what the
    results of the pair show), and as results usually are until there: by chance four numbers may agree.
    """
    made = [
        (other, list(distances.results(one, other)), distances.inputs(one, other)) for one, other in alignment.pairs
    ]
    levels = sorted(level for _, results, _ in made for level in results)
    least = levels[len(levels) // 5] if levels else 0.0
    so_far = _RunningMedian()
    found: list[_Measured] = []
    for call, results, inputs in made:
        if results:
            found.append(_Measured(call, max(inputs, so_far.value, least), max(results)))
        for level in results:
            so_far.add(level)
    return found


class _RunningMedian:
    """The median of what was added, in one pass: each value moves the logarithm of the estimate by a step that shrinks
    (Robbins and Monro)."""

    def __init__(self) -> None:
        self.value = 0.0
        self._count = 0

    def add(self, value: float) -> None:
        self._count += 1
        if self.value == 0.0:
            self.value = value
        elif value != self.value:
            self.value *= math.exp(math.copysign(4.0 / (self._count + 3), value - self.value))


def _not_finite(alignment: Alignment, distances: _Distances) -> Iterator[Suspect]:
    for one, other in alignment.pairs:
        if any(_broken(distances, a, b) for a, b in zip(one.inputs, other.inputs, strict=False)):
            continue
        number = sum(_broken(distances, a, b) for a, b in zip(one.outputs, other.outputs, strict=False))
        if number:
            text = say("values are not finite where those of the reference are; its inputs are finite alike")
            yield Suspect(other, "not finite", 2000.0 - other.index * 1e-3, text)


def _broken(distances: _Distances, one: TensorRef, other: TensorRef) -> bool:
    a, b = distances.statistics(one, other)
    if a is None or b is None:
        return False
    infinite = 0 if _is_saturated(a, one.dtype) or _is_saturated(b, other.dtype) else b.infs - a.infs
    return b.nans - a.nans + infinite > 0


def _own_errors(measured: Sequence[_Measured]) -> Iterator[Suspect]:
    growths: dict[str, list[float]] = defaultdict(list)
    for one in measured:
        growths[one.call.operator].append(one.growth)
    everywhere = _upper_end([one.growth for one in measured])
    usual = {key: _upper_end(values) if len(values) >= _ENOUGH else everywhere for key, values in growths.items()}
    for one in measured:
        score = one.growth - usual[one.call.operator]
        if score > _SUSPICIOUS:
            yield Suspect(one.call, "error", score, _text(one))


def _upper_end(values: list[float]) -> float:
    """Up to where most values lie: told from the middle half, which a few that are far off do not move."""
    if len(values) < 2:
        return 0.0
    _, middle, upper = quantiles(values, n=4)
    return max(middle + 2.5 * (upper - middle), 0.0)


def _text(one: _Measured) -> Sentence:
    return say(
        "its result is {after} apart, its inputs {before}",
        after=f"{one.after:.1e}",
        before=f"{one.before:.1e}",
    )
