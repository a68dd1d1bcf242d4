"""The own error of each call: how far its result is from what its inputs give in float64, in both runs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from npuport.findings import Sentence, say
from npuport.precision.operators.agreement import ROUNDING
from npuport.precision.operators.alignment import Alignment
from npuport.precision.operators.calls import Call, Step
from npuport.precision.operators.growth import Distances
from npuport.precision.operators.replay import CallError, errors_of
from npuport.precision.operators.suspicion import Measure, Suspect
from npuport.precision.operators.threads import Advance, in_threads

_SUSPICIOUS = 7.0  # deviations from what other calls show
# Of the logarithm of a ratio, between two runs, of errors and of largest single errors: closer no healthy calls agree.
_SPREAD_OF_SIZES, _SPREAD_OF_PEAKS = 0.12, 0.4
_ENOUGH = 8  # calls of an operator that tell what is usual for it
_WITHOUT_MATCH = 16.0  # times the usual error: sums of terms that cancel have some times more
_SCALE = 8.0  # standard errors that a result may be off as a whole


@dataclass(frozen=True)
class Replayed:
    """One floating result of a call, and its errors in both runs."""

    call: Call
    dtype: str
    of_reference: str  # its dtype there
    reference: CallError
    candidate: CallError

    @property
    def is_comparable(self) -> bool:
        return self.reference.relative > 0 and self.candidate.relative > 0

    @property
    def rounding(self) -> float:
        return ROUNDING[self.dtype]

    @property
    def size(self) -> float:
        """The logarithm of the ratio of the errors, each in roundings of its dtype; below a quarter two are equal."""
        own, other = self.candidate.relative / self.rounding, self.reference.relative / ROUNDING[self.of_reference]
        return math.log(max(own, 0.25) / max(other, 0.25))

    @property
    def peak(self) -> float:
        return math.log((self.candidate.peak + 1) / (self.reference.peak + 1))

    @property
    def chance(self) -> float:
        """Variance that ``size`` has by chance: errors are averaged over so many values only."""
        return 0.5 / self.reference.effective + 0.5 / self.candidate.effective


def replayed_pairs(
    alignment: Alignment,
    reference: Step,
    candidate: Step,
    distances: Distances,
    advance: Advance | None = None,
) -> tuple[Replayed, ...]:
    """Replay the calls of both, and look up how far apart their results are."""

    def of_pair(pair: tuple[Call, Call]) -> list[Replayed]:
        one, other = pair
        for a, b in zip(one.outputs, other.outputs, strict=False):
            distances.apart(a, b)
        before, after = errors_of(one, reference), errors_of(other, candidate)
        return [
            Replayed(other, other.outputs[at].dtype, one.outputs[at].dtype, before[at], after[at])
            for at in before.keys() & after.keys()
        ]

    return tuple(one for found in in_threads(of_pair, alignment.pairs, advance) for one in found)


def noise_of(replayed: Sequence[Replayed]) -> tuple[float, float]:
    """The usual error of a call of the reference, and of the candidate."""
    if not replayed:
        return 0.0, 0.0
    return median(one.reference.relative for one in replayed), median(one.candidate.relative for one in replayed)


class UsualErrors:
    """What the sizes of errors, and the largest single ones, usually are, over those of the reference."""

    def __init__(self, replayed: Sequence[Replayed]) -> None:
        self.sizes, self.peaks = _Usual(_SPREAD_OF_SIZES), _Usual(_SPREAD_OF_PEAKS)
        for one in replayed:
            self.sizes.add(one.call.operator, one.size)
            self.peaks.add(one.call.operator, one.peak)

    def times(self, one: Replayed) -> float:
        """How many times larger an error is than usual, as a whole or in a single value."""
        operator = one.call.operator
        return math.exp(max(self.sizes.above(operator, one.size), self.peaks.above(operator, one.peak)))


def own_errors(replayed: Sequence[Replayed], usual: UsualErrors) -> Iterator[Suspect]:
    for one in replayed:
        a, b = one.reference, one.candidate
        if b.broken > a.broken:
            text = say("{number} values are not finite (or finite where they should not be), given these inputs",
                       number=b.broken)  # fmt: skip
            yield Suspect(one.call, "not finite", 2000.0 - one.call.index * 1e-3, text, is_replayed=True)
            continue
        size = usual.sizes.deviation(one.call.operator, one.size, one.chance)
        peak = usual.peaks.deviation(one.call.operator, one.peak)
        is_off = abs(b.factor - 1) > 4 * one.rounding and b.scale > max(_SCALE, 4 * a.scale)
        score = max(size, peak, b.scale if is_off else 0.0)
        if score > _SUSPICIOUS and b.relative > 2 * one.rounding:
            text = _error_text(a, b, size, peak, b.scale if is_off else 0.0)
            yield Suspect(one.call, "error", score, text, usual.times(one), is_replayed=True)


def error_without_match(call: Call, step: Step, noise: tuple[float, float]) -> Suspect | None:
    """The own error of a call that the reference does not have, if it is far above the usual ``noise`` of both runs."""
    worst = max(errors_of(call, step).items(), key=lambda one: one[1].relative, default=None)
    if worst is None:
        return None
    place, error = worst
    times = error.relative / max(*noise, ROUNDING[call.outputs[place].dtype])
    if times < _WITHOUT_MATCH:
        return None
    text = say("its own error is {error}; {usual} is usual", error=f"{error.relative:.1e}", usual=f"{max(noise):.1e}")
    return Suspect(call, "error", _SUSPICIOUS, text, times, is_replayed=True)


def _error_text(a: CallError, b: CallError, size: float, peak: float, whole: float) -> Sentence:
    if whole > max(size, peak):
        return say("its own result is {share} off as a whole; inputs are its own", share=f"{b.factor - 1:+.2%}")
    if peak > size:
        return say("single values of its own result are far off: {peak} x the usual error", peak=f"{b.peak:.0f}")
    return say(
        "its own error is {error}, of the reference {other}", error=f"{b.relative:.1e}", other=f"{a.relative:.1e}"
    )


class _Usual:
    """What healthy calls show: those of the same operator where there are enough of them, else all."""

    def __init__(self, smallest_spread: float) -> None:
        self._smallest_spread = smallest_spread
        self._values: dict[str, list[float]] = defaultdict(list)
        self._known: dict[str, tuple[float, float]] = {}

    def add(self, operator: str, value: float) -> None:
        self._values[operator].append(value)
        self._values[""].append(value)
        self._known.clear()

    def above(self, operator: str, value: float) -> float:
        """How far a value is above the middle of what is usual."""
        return value - self._middle_and_spread(operator)[0]

    def deviation(self, operator: str, value: float, chance: float = 0.0) -> float:
        """How many deviations a value is above what is usual."""
        middle, spread = self._middle_and_spread(operator)
        return (value - middle) / math.hypot(spread, math.sqrt(chance))

    def _middle_and_spread(self, operator: str) -> tuple[float, float]:
        kind = operator if len(self._values[operator]) >= _ENOUGH else ""
        if kind not in self._known:
            values = self._values[kind]
            middle = median(values)
            spread = max(1.4826 * median(abs(one - middle) for one in values), self._smallest_spread)
            self._known[kind] = middle, spread
        return self._known[kind]


def measures_of(
    alignment: Alignment, replayed: Sequence[Replayed], usual: UsualErrors, distances: Distances
) -> dict[int, Measure]:
    """Of each call the result with the largest error over what is usual."""
    errors: dict[int, tuple[float, float, float]] = {}
    for one in replayed:
        found = usual.times(one), one.candidate.relative, one.reference.relative
        errors[one.call.index] = max(found, errors.get(one.call.index, found))
    measures = {}
    for before, after in alignment.pairs:
        pairs = [(a, b) for a, b in zip(before.outputs, after.outputs, strict=False) if b.dtype in ROUNDING]
        apart = max((distances.apart(a, b) for a, b in pairs), default=None)
        times, error, of_reference = errors.get(after.index, (None, None, None))
        measures[after.index] = Measure(error, of_reference, times, apart)
    return measures
