"""Whether two stretches of different operators compute the same: a fused operator against its parts, say.

The reference's stretch is replayed in float64 with the tensors that the candidate gave to its own: what comes out is
what the candidate's should have given, and no definition of a fused operator is needed. Where the reference's cannot
be replayed, for it is the one with the fused operator, it is done the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from npuport.precision.operators.agreement import ROUNDING, apart
from npuport.precision.operators.alignment import Alignment, Difference
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.counterparts import Counterparts, Pair
from npuport.precision.operators.drawing import is_random
from npuport.precision.operators.replay import CallError, error_between
from npuport.precision.operators.substitution import Replay

if TYPE_CHECKING:
    from torch import Tensor

_TIMES = 8.0  # an error larger than the other side's by this factor is not by chance
_ROUNDINGS = 16.0
_SAME = 1e-12
_STANDARD_ERRORS = 8.0  # that a result may be off as a whole
_BEHIND = (1, 2, 4)  # calls behind a difference that may belong to its stretch, such as sums of gradients
_NEAR = 12  # calls between two differences that may belong to one stretch
_MAKERS = 64  # calls that make anew what only one run has
_NO_ERROR = CallError(relative=0.0, peak=0.0, scale=0.0, factor=1.0, broken=0, effective=1.0)

_Counterpart = Callable[[int], Pair | None]
"""The pair with a storage of one side."""


@dataclass(frozen=True)
class Judged:
    """What replaying told of a stretch: the error of the result that is the furthest off. ``is_reversed``: it is the
    reference's, measured by the candidate's calls. ``is_sure``: both sides had the same inputs for that result."""

    is_healthy: bool
    error: CallError
    storage: int | None = None  # of the candidate, with that result
    is_reversed: bool = False
    is_sure: bool = True
    first: int | None = None  # the storage of the first result that is off: later ones inherit its error


class Stretches:
    """Judges the differences of an alignment of two steps with tensors."""

    def __init__(self, alignment: Alignment, reference: Step, candidate: Step, noise: tuple[float, float]) -> None:
        """``noise``: the error that a call of either side usually has, as a share of its result."""
        self._noise = noise
        self._sides = (reference, candidate)
        self._pairs = alignment.pairs
        self._differences = alignment.differences
        self._known: dict[tuple[int, int, int], Judged | None] = {}
        self._places_of = {id(one): place for place, one in enumerate(alignment.differences)}
        self._same = Counterparts(alignment, reference, candidate)

    def judged(self, difference: Difference, usual: float) -> Judged | None:
        """Whether what a stretch made is what the other side's calls make of the same; None where neither side can be
        replayed. ``usual``: how far apart the two runs are at that place, which counts where a stretch uses tensors
        that only its own side has. A stretch that seems wrong is judged again together with the differences near it:
        calls between them may have been matched by chance."""
        first = self._judged(*self._region([difference], 0), usual)
        if first is not None and first.is_healthy:
            return first
        near = _neighbours(self._differences, self._places_of[id(difference)])
        if first is not None and self._is_of_another(first, difference, near):
            return replace(first, is_healthy=True)
        for differences, behind in self._wider(difference, near):
            key = id(differences[0]), id(differences[-1]), behind
            if key not in self._known:  # neighbours have one region, and it may be as large as an optimizer's step
                self._known[key] = self._judged(*self._region(differences, behind), usual)
            found = self._known[key]
            if found is not None and (found.is_healthy or self._is_of_another(found, difference, near)):
                return replace(found, is_healthy=True)
            first = first or found
        return first

    def around(self, difference: Difference) -> tuple[Call, ...]:
        """The candidate's calls of the widest stretch that a difference is judged by."""
        near = _neighbours(self._differences, self._places_of[id(difference)])
        return self._region(near, _BEHIND[-1])[1]

    def is_same_program(self, difference: Difference, usual: float) -> bool:
        """Whether the candidate's calls give in float64, for the reference's tensors, what the reference got: a stretch
        that is off all the same has a call with an error of its own."""
        near = _neighbours(self._differences, self._places_of[id(difference)])
        for differences, behind in (([difference], 0), *self._wider(difference, near)):
            reference, candidate, without = self._region(differences, behind)
            results = list(self._same.results((reference, candidate), without))
            counterpart = self._counterpart_in((reference, candidate), 1, without)
            judged = self._replayed(results, candidate, 1, counterpart, usual) if results else None
            if judged is not None and judged.is_healthy:
                return True
        return False

    def _wider(self, difference: Difference, near: Sequence[Difference]) -> Iterator[tuple[Sequence[Difference], int]]:
        """Larger stretches around a difference: the differences, and how many pairs behind them."""
        if len(near) > 1:
            yield near, 0
        if self._is_doubtful(difference):
            yield from (([difference], number) for number in _BEHIND)
            yield near, _BEHIND[-1]

    def _is_doubtful(self, difference: Difference) -> bool:
        """Whether a call that uses what one side made uses something in the other run that was not made in the stretch:
        it may be another call."""
        made = [
            {ref.storage for call in calls for ref in call.outputs}
            for calls in (difference.reference, difference.candidate)
        ]
        pairs = self._same.results((difference.reference, difference.candidate), frozenset())
        return any((a.storage in made[0]) != (b.storage in made[1]) for a, b in pairs)

    def _is_of_another(self, judged: Judged, difference: Difference, near: Sequence[Difference]) -> bool:
        """Whether another difference nearby made what is off: it is judged itself, by that result."""
        return any(
            judged.first in {ref.storage for call in other.candidate for ref in call.outputs}
            and judged.first in self._judged_by(other)
            for other in near
            if other is not difference
        )

    def _judged_by(self, difference: Difference) -> set[int]:
        """The storages of the candidate that a difference is judged by."""
        return {
            pair[1].storage for pair in self._same.results((difference.reference, difference.candidate), frozenset())
        }

    def come_to_the_same(self, one: Call, other: Call) -> bool:
        """Whether two aligned calls with different arguments give the same for the same tensors, whatever these are:
        in float64 no more than its roundings apart."""
        from npuport.precision.operators.execution import NotExecutableError, execute

        given = [
            (a, self._sides[1].tensor(b)) for a, b in zip(one.inputs, other.inputs, strict=False) if a.shape == b.shape
        ]
        expected = Replay(self._sides[0], [one], one.outputs).results(given)
        try:
            own = execute(other, self._sides[1])
        except NotExecutableError:
            return False
        return expected is not None and all(
            a.shape == b.shape and apart(a, b) < _SAME for a, b in zip(expected, own, strict=False)
        )

    def _region(
        self, near: Sequence[Difference], behind: int
    ) -> tuple[tuple[Call, ...], tuple[Call, ...], frozenset[int]]:
        """The calls of both sides from the first to the last of some differences and of ``behind`` pairs after them,
        with the places of the pairs among them."""
        sides = tuple([call for one in near for call in calls(one)] for calls in (_reference_of, _candidate_of))
        spans = [range(calls[0].index, calls[-1].index) if calls else range(0) for calls in sides]
        places = {place for side, span in enumerate(spans) for place in self._same.places(side, span)}
        if behind:
            side = 1 if sides[1] else 0
            next_place = self._same.places(side, range(0, sides[side][-1].index)).stop
            places |= set(range(next_place, min(next_place + behind, len(self._pairs))))
        reference, candidate = (
            tuple(sorted((*own, *(self._pairs[place][side] for place in places)), key=lambda call: call.index))
            for side, own in enumerate(sides)
        )
        return reference, candidate, frozenset(places)

    def _judged(
        self, reference: Sequence[Call], candidate: Sequence[Call], without: frozenset[int], usual: float
    ) -> Judged | None:
        results = list(self._same.results((reference, candidate), without))
        if not results:
            return None if self._same.are_used((reference, candidate)) else Judged(True, _NO_ERROR)
        for side, parts in ((0, reference), (1, candidate)):
            anyhow = self._counterpart_in((reference, candidate), side, without)

            def near(storage: int, anyhow: _Counterpart = anyhow) -> Pair | None:
                found = anyhow(storage)
                return found if found is not None and self._same.distance(found) <= usual else None

            judged = self._replayed(results, parts, side, anyhow, usual)
            if judged is None:
                continue
            if judged.is_healthy:
                return judged
            # Sums may be cut into other parts, which seem to be the same: from what agrees they are made anew.
            again = self._replayed(results, parts, side, near, usual)
            return again if again is not None and again.is_healthy else judged
        return None

    def _counterpart_in(
        self, stretches: tuple[Sequence[Call], Sequence[Call]], side: int, without: frozenset[int]
    ) -> _Counterpart:
        """The pair with a storage of one side that no call of the other side's stretch made."""
        made = {ref.storage for call in stretches[1 - side] for ref in call.outputs}
        named = self._same.named_before(stretches)[side]
        return lambda storage: self._same.counterpart(side, storage, without, made, named.get(storage))

    def _replayed(
        self, results: Sequence[Pair], parts: Sequence[Call], side: int, counterpart: _Counterpart, usual: float
    ) -> Judged | None:
        """The verdict by replaying one side's calls; None where these cannot be replayed."""
        wanted = [pair[side] for pair in results]
        for calls in (self._with_makers(parts, wanted, side, counterpart), parts):
            replay = Replay(self._sides[side], calls, wanted)
            given, missing = self._given(replay, side, counterpart)
            expected = replay.results(given)
            if expected is not None:
                own = replay.results([]) or expected
                return self._judge(results, expected, own, side, usual, replay.depending_on(missing))
        return None

    def _with_makers(
        self, parts: Sequence[Call], wanted: Sequence[TensorRef], side: int, counterpart: _Counterpart
    ) -> Sequence[Call]:
        """A stretch with the calls that made what the other run does not have, such as the statistics of a norm: these
        are computed again from what both have."""
        calls = {call.index: call for call in parts}
        while len(calls) < len(parts) + _MAKERS:
            needed = Replay(self._sides[side], list(calls.values()), wanted).needed()
            makers = [
                self._same.makers[side].get(storage)
                for storage, ref in needed.items()
                if ref.dtype in ROUNDING and counterpart(storage) is None
            ]
            found = {call.index: call for call in makers if call is not None and not is_random(call)}
            if not found:
                break
            calls.update(found)
        return sorted(calls.values(), key=lambda call: call.index)

    def _given(
        self, replay: Replay, side: int, counterpart: _Counterpart
    ) -> tuple[list[tuple[TensorRef, Tensor]], set[int]]:
        """The other side's tensors for what a stretch needs; and the storages that have none."""
        given, missing = [], set()
        for storage, ref in replay.needed().items():
            found = counterpart(storage)
            if found is not None:
                given.append((found[side], self._sides[1 - side].tensor(found[1 - side])))
            elif ref.dtype in ROUNDING and not self._same.is_weight(side, storage):
                missing.add(storage)
        return given, missing

    def _judge(
        self,
        results: Sequence[Pair],
        expected: Sequence[Tensor],
        own: Sequence[Tensor],
        side: int,
        usual: float,
        mixed: Container[int],
    ) -> Judged:
        """The verdict on the results of one side's replay: ``expected`` with the other side's tensors, ``own`` with its
        own. ``mixed``: the storages that were made from tensors of both sides. Of several results the one that is the
        furthest off decides."""
        verdicts = []
        for pair, truth, of_own in zip(results, expected, own, strict=True):
            is_sure = pair[side].storage not in mixed
            floor = max(_TIMES * self._noise[1 - side], 0.0 if is_sure else usual)
            error = error_between(self._sides[1 - side].tensor(pair[1 - side]), truth)
            of_parts = error_between(self._sides[side].tensor(pair[side]), of_own)
            is_healthy = _is_healthy(error, of_parts, pair, floor)
            verdicts.append(Judged(is_healthy, error, pair[1].storage, bool(side), is_sure))
        worst = max(verdicts, key=lambda one: (not one.is_healthy, one.is_sure, one.error.broken, one.error.relative))
        off = [one.storage for one in verdicts if not one.is_healthy and one.storage in self._same.makers[1]]
        return replace(
            worst, first=min(off, key=lambda storage: self._same.makers[1][storage].index, default=worst.storage)
        )


def _is_healthy(error: CallError, of_parts: CallError, result: Pair, floor: float) -> bool:
    """Whether the error of one side is no larger than the other side's, the roundings and a floor explain."""
    if not all(ref.dtype in ROUNDING for ref in result):
        return error.relative == 0 and error.broken == 0
    rounding = max(ROUNDING[ref.dtype] for ref in result)
    if error.broken > of_parts.broken or error.relative > max(_TIMES * of_parts.relative, _ROUNDINGS * rounding, floor):
        return False
    is_off = abs(error.factor - 1) > max(_TIMES * abs(of_parts.factor - 1), rounding, floor)
    return not (is_off and error.scale > _STANDARD_ERRORS)


def _neighbours(differences: Sequence[Difference], at: int) -> list[Difference]:
    """The difference at a place with those before and behind it that are near."""
    first = last = at
    while first > 0 and _are_near(differences[first - 1], differences[first]):
        first -= 1
    while last + 1 < len(differences) and _are_near(differences[last], differences[last + 1]):
        last += 1
    return list(differences[first : last + 1])


def _are_near(one: Difference, other: Difference) -> bool:
    """Whether a difference follows another closely in the same phase, on both sides."""
    calls = (*one.candidate, *one.reference), (*other.candidate, *other.reference)
    if calls[0][0].phase != calls[1][0].phase or calls[0][0].module.split(".")[:3] != calls[1][0].module.split(".")[:3]:
        return False
    sides = ((one.reference, other.reference), (one.candidate, other.candidate))
    gaps = [b[0].index - a[-1].index for a, b in sides if a and b]
    return not gaps or min(gaps) <= _NEAR


def _reference_of(difference: Difference) -> tuple[Call, ...]:
    return difference.reference


def _candidate_of(difference: Difference) -> tuple[Call, ...]:
    return difference.candidate
