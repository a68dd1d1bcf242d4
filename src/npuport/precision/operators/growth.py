"""Which results are further apart between two runs than the inputs of their calls, by more than other calls show.

That is what can be asked of a call that cannot be replayed: there are statistics only, or there is no such operator on
the CPU.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import quantiles

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import ROUNDING, apart, norm_of
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.drawing import holds_anything, is_random
from npuport.precision.operators.levels import apart_by_statistics, level_of
from npuport.precision.operators.statistics import Statistics
from npuport.precision.operators.suspicion import Suspect
from npuport.precision.operators.threads import Advance

_SUSPICIOUS = 3.0  # of the logarithm of how much further apart a result is than inputs, above what is usual
_SAMPLE = 200  # calls that tell what is usual beside those that were not replayed
_ENOUGH = 8  # calls of an operator that tell what is usual for it
# A reduction may leave next to nothing of what it adds up, and that is rounding: results smaller than this share of the
# smallest input count as that large.
_CANCELLED = 0.03


@dataclass(frozen=True)
class Measured:
    """A floating result, how far apart it is, and how far apart the inputs of its call are (as noise of one value)."""

    call: Call
    before: float
    after: float

    @property
    def growth(self) -> float:
        return math.log(self.after / self.before)


class Distances:
    """How far the tensors of two steps are apart, each pair looked up once."""

    def __init__(self, reference: Step, candidate: Step) -> None:
        self._reference, self._candidate = reference, candidate
        self._levels: dict[tuple[TensorRef, TensorRef], float] = {}

    def statistics(self, one: TensorRef, other: TensorRef) -> tuple[Statistics | None, Statistics | None]:
        return self._reference.statistics_of(one), self._candidate.statistics_of(other)

    def is_known(self, one: TensorRef, other: TensorRef) -> bool:
        """Whether something of the values is there that can be compared."""
        if self._has_tensors(one, other):
            return True
        a, b = self.statistics(one, other)
        if a is None or b is None:
            return False
        return (a.is_known and b.is_known) or None not in (a.checksum, b.checksum)

    def level(self, one: TensorRef, other: TensorRef) -> float:
        """The noise on one value, as a share of it, that two tensors differ by; NaN where nothing is known."""
        key = one, other
        found = self._levels.get(key)
        if found is None:
            found = self._levels[key] = self._level(one, other)
        return found

    def look_up(self, one: Call, other: Call) -> None:
        """Have all that is asked of two calls looked up, so that threads may share it out."""
        for a, b in (*zip(one.inputs, other.inputs, strict=False), *zip(one.outputs, other.outputs, strict=False)):
            self.apart(a, b)

    def apart(self, one: TensorRef, other: TensorRef) -> float:
        """How far apart two tensors are (from statistics: at least), as a share of their size."""
        if one.shape != other.shape:
            return 1.0
        if self._has_tensors(one, other):
            return self.level(one, other)
        a, b = self.statistics(one, other)
        if a is None or b is None:
            return 0.0
        return apart_by_statistics(a, b, math.prod(one.shape), one.dtype in ROUNDING and other.dtype in ROUNDING)

    def _level(self, one: TensorRef, other: TensorRef) -> float:
        if self._has_tensors(one, other):
            return apart(self._reference.tensor(one), self._candidate.tensor(other))
        a, b = self.statistics(one, other)
        return math.nan if a is None or b is None else level_of(a, b, math.prod(one.shape), one.dtype)

    def _has_tensors(self, one: TensorRef, other: TensorRef) -> bool:
        return one.storage in self._reference.storages and other.storage in self._candidate.storages

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
        if all(math.prod(ref.shape) <= count for ref in call.inputs):
            return 1.0
        norms = [norm for ref in call.inputs if ref.dtype in ROUNDING and (norm := self._norm(ref)) > 0]
        least, norm = _CANCELLED * min(norms, default=0.0), self._norm(result)
        return norm / least if 0 < norm < least else 1.0

    def _norm(self, ref: TensorRef) -> float:
        if ref.storage in self._reference.storages:
            return norm_of(self._reference.tensor(ref))
        found = self._reference.statistics_of(ref)
        return found.norm if found is not None else 0.0


def measured(
    pairs: Sequence[tuple[Call, Call]], distances: Distances, advance: Advance | None = None
) -> list[Measured]:
    """Each call's result that is furthest apart for what its inputs are.

    Inputs count as apart at least as a result is that a healthy call makes from equal inputs (the least of what the
    results of the pair show, and the rounding of its dtype), and as results usually are until there: by chance four
    numbers may agree.
    """
    made = []
    for one, other in pairs:
        if not (holds_anything(other) or is_random(other)):
            made.append((one, other, list(distances.results(one, other)), distances.inputs(one, other)))
        if advance is not None:
            advance(1)
    levels = sorted(level for _, _, results, _ in made for level in results)
    least = levels[len(levels) // 5] if levels else 0.0
    so_far = _RunningMedian()
    found: list[Measured] = []
    for one, other, results, inputs in made:
        if results:
            before = max(inputs, so_far.value, least, _rounding(one), _rounding(other))
            found.append(Measured(other, before, max(results)))
        for level in results:
            so_far.add(level)
    return found


def _rounding(call: Call) -> float:
    return max((ROUNDING[ref.dtype] for ref in call.outputs if ref.dtype in ROUNDING), default=0.0)


def suspects_without_replay(
    pairs: Sequence[tuple[Call, Call]], distances: Distances, replayed: Collection[int]
) -> Iterator[Suspect]:
    """Suspects among the calls that could not be replayed (``replayed`` has the indexes of those that were):
    operators that only the device has, such as fused ones. Some of the others tell what is usual."""
    judged = {other.index for _, other in pairs if other.index not in replayed and _is_function(other)}
    if not judged:
        return
    others = [pair for pair in pairs if pair[1].index in replayed]
    usual = {other.index for _, other in others[:: max(len(others) // _SAMPLE, 1)]}
    chosen = [pair for pair in pairs if pair[1].index in judged or pair[1].index in usual]
    for suspect in own_errors(measured(chosen, distances)):
        if suspect.call.index in judged:
            yield suspect


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


def own_errors(results: Sequence[Measured]) -> Iterator[Suspect]:
    growths: dict[str, list[float]] = defaultdict(list)
    for one in results:
        growths[_kind(one.call)].append(one.growth)
    everywhere = _upper_end([one.growth for one in results])
    usual = {key: _upper_end(values) if len(values) >= _ENOUGH else everywhere for key, values in growths.items()}
    for one in results:
        score = one.growth - usual[_kind(one.call)]
        if score > _SUSPICIOUS:
            yield Suspect(one.call, "error", score, _text(one))


def _is_function(call: Call) -> bool:
    """Whether the results follow from the inputs that were recorded."""
    namespace, _, name = call.operator.partition(".")
    is_memory = name.startswith(("empty", "new_empty", "resize", "set_", "_local_scalar_dense"))
    return bool(call.inputs) and "c10d" not in namespace and not is_memory and not is_random(call)


def _kind(call: Call) -> str:
    """The operator without its overload; of msprobe's calls without their number."""
    return call.operator.rpartition(".")[0]


def _upper_end(values: list[float]) -> float:
    """Up to where most values lie: told from the middle half, which a few that are far off do not move."""
    if len(values) < 2:
        return 0.0
    _, middle, upper = quantiles(values, n=4)
    return max(middle + 2.5 * (upper - middle), 0.0)


def _text(one: Measured) -> Sentence:
    return say(
        "its result is {after} apart, its inputs {before}",
        after=f"{one.after:.1e}",
        before=f"{one.before:.1e}",
    )
