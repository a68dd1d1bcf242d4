"""Whether two stretches of different operators compute the same: a fused operator against its parts, say.

The reference's stretch is replayed in float64 with the tensors that the candidate gave to its own: what comes out is
what the candidate's should have given, and no definition of a fused operator is needed. Where the reference's cannot
be replayed, for it is the one with the fused operator, it is done the other way round.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from npuport.precision.operators.agreement import ROUNDING, apart
from npuport.precision.operators.alignment import Alignment, Difference
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.drawing import is_random
from npuport.precision.operators.replay import CallError, error_between
from npuport.precision.operators.substitution import Replay
from npuport.precision.operators.versions import Versions

if TYPE_CHECKING:
    from torch import Tensor

_TIMES = 8.0  # an error larger than the other side's by this factor is not by chance
_ROUNDINGS = 16.0
_SAME = 1e-12
_STANDARD_ERRORS = 8.0  # that a result may be off as a whole
_BEHIND = (1, 2, 4)  # calls behind a difference that may belong to its stretch, such as sums of gradients
_NEAR = 12  # calls between two differences that may belong to one stretch
_MAKERS = 64  # calls that make anew what only one run has
_NEARER = 0.01  # the same tensor is nearer than one that was matched by chance by this factor
_NO_ERROR = CallError(relative=0.0, peak=0.0, scale=0.0, factor=1.0, broken=0, effective=1.0)

Pair = tuple[TensorRef, TensorRef]
"""The same tensor of the reference and of the candidate."""

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
        self._chance: dict[int, bool] = {}
        self._distances: dict[Pair, float] = {}
        self._known: dict[tuple[int, int, int], Judged | None] = {}
        self._places_of = {id(one): place for place, one in enumerate(alignment.differences)}
        self._indexes = [one.index for one, _ in alignment.pairs], [other.index for _, other in alignment.pairs]
        self._of_storage: tuple[dict[int, list[tuple[int, Pair]]], ...] = (defaultdict(list), defaultdict(list))
        self._used: tuple[dict[int, list[tuple[int, Pair]]], ...] = (defaultdict(list), defaultdict(list))
        self._makers = tuple(
            {ref.storage: call for call in reversed(step.calls) for ref in call.outputs} for step in self._sides
        )
        self._readers = tuple(_readers_of(step) for step in self._sides)
        self._versions = Versions(reference, candidate)
        self._left = [pair for pair in self._versions.last() if pair[0].dtype in ROUNDING]
        for place, (one, other) in enumerate(alignment.pairs):
            for a, b in zip(one.inputs, other.inputs, strict=False):
                self._note(self._used, place, a, b)
            for a, b in (*zip(one.inputs, other.inputs, strict=False), *zip(one.outputs, other.outputs, strict=False)):
                self._note(self._of_storage, place, a, b)

    @staticmethod
    def _note(index: tuple[dict[int, list[tuple[int, Pair]]], ...], place: int, a: TensorRef, b: TensorRef) -> None:
        if a.shape == b.shape:
            index[0][a.storage].append((place, (a, b)))
            index[1][b.storage].append((place, (a, b)))

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
        pairs = self._results((difference.reference, difference.candidate), frozenset())
        return any((a.storage in made[0]) != (b.storage in made[1]) for a, b in pairs)

    @staticmethod
    def _is_of_another(judged: Judged, difference: Difference, near: Sequence[Difference]) -> bool:
        """Whether another difference nearby made what is off: it is judged itself."""
        return any(
            judged.first in {ref.storage for call in other.candidate for ref in call.outputs}
            for other in near
            if other is not difference
        )

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
        places = {place for side, span in enumerate(spans) for place in self._places(side, span)}
        if behind:
            side = 1 if sides[1] else 0
            next_place = bisect_left(self._indexes[side], sides[side][-1].index)
            places |= set(range(next_place, min(next_place + behind, len(self._pairs))))
        reference, candidate = (
            tuple(sorted((*own, *(self._pairs[place][side] for place in places)), key=lambda call: call.index))
            for side, own in enumerate(sides)
        )
        return reference, candidate, frozenset(places)

    def _places(self, side: int, span: range) -> range:
        """The places of the pairs with a call of one side in a span of indexes."""
        return range(bisect_left(self._indexes[side], span.start), bisect_left(self._indexes[side], span.stop))

    def _judged(
        self, reference: Sequence[Call], candidate: Sequence[Call], without: frozenset[int], usual: float
    ) -> Judged | None:
        results = list(self._results((reference, candidate), without))
        if not results:
            return None if self._are_used((reference, candidate)) else Judged(True, _NO_ERROR)
        named = self._versions.before(self._starts((reference, candidate)))
        for side, parts, others in ((0, reference, candidate), (1, candidate, reference)):
            made = {ref.storage for call in others for ref in call.outputs}

            def anyhow(storage: int, side: int = side, made: set[int] = made) -> Pair | None:
                return self._counterpart(side, storage, without, made, named[side].get(storage))

            def near(storage: int, anyhow: _Counterpart = anyhow) -> Pair | None:
                found = anyhow(storage)
                return found if found is not None and self._distance(found) <= usual else None

            judged = self._replayed(results, parts, side, anyhow, usual)
            if judged is None:
                continue
            if judged.is_healthy:
                return judged
            # Sums may be cut into other parts, which seem to be the same: from what agrees they are made anew.
            again = self._replayed(results, parts, side, near, usual)
            return again if again is not None and again.is_healthy else judged
        return None

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

    def _results(self, calls: tuple[Sequence[Call], Sequence[Call]], without: frozenset[int]) -> Iterator[Pair]:
        """What the stretches made and aligned calls use, and the parameters and states that they left."""
        made = [{ref.storage for call in own for ref in call.outputs} for own in calls]
        yield from (pair for pair in self._left if pair[0].storage in made[0] and pair[1].storage in made[1])
        seen: set[Pair] = set()
        ends = self._ends(calls)
        for side, own in enumerate(made):
            for storage in own:
                for place, pair in self._used[side].get(storage, ()):
                    # What the other run makes later belongs to another stretch: calls were matched by chance.
                    maker = self._makers[1 - side].get(pair[1 - side].storage)
                    is_later = maker is not None and maker.index > ends[1 - side]
                    if place not in without and pair not in seen and not is_later:
                        seen.add(pair)
                        yield pair

    def _ends(self, calls: tuple[Sequence[Call], Sequence[Call]]) -> tuple[int, int]:
        """The index of the last call of each side; where a side has none, of the last pair before the other's."""
        ends = []
        for side, own in enumerate(calls):
            other = calls[1 - side]
            if own:
                ends.append(own[-1].index)
            else:
                place = bisect_left(self._indexes[1 - side], other[0].index)
                ends.append(self._indexes[side][place - 1] if place else -1)
        return ends[0], ends[1]

    def _are_used(self, stretches: tuple[Sequence[Call], Sequence[Call]]) -> bool:
        """Whether calls outside of two stretches use what was made inside."""
        for readers, own in zip(self._readers, stretches, strict=True):
            inside = {call.index for call in own}
            made = {ref.storage for call in own for ref in call.outputs}
            if any(index not in inside for storage in made for index in readers.get(storage, ())):
                return True
        return False

    def _starts(self, calls: tuple[Sequence[Call], Sequence[Call]]) -> tuple[float, float]:
        """The index of the first call of each side; where a side has none, of the first pair behind the other's."""
        starts = []
        for side, own in enumerate(calls):
            other = calls[1 - side]
            if own:
                starts.append(float(own[0].index))
            else:
                place = bisect_left(self._indexes[1 - side], other[0].index)
                starts.append(self._indexes[side][place] if place < len(self._pairs) else inf)
        return starts[0], starts[1]

    def _with_makers(
        self, parts: Sequence[Call], wanted: Sequence[TensorRef], side: int, counterpart: _Counterpart
    ) -> Sequence[Call]:
        """A stretch with the calls that made what the other run does not have, such as the statistics of a norm: these
        are computed again from what both have."""
        calls = {call.index: call for call in parts}
        while len(calls) < len(parts) + _MAKERS:
            needed = Replay(self._sides[side], list(calls.values()), wanted).needed()
            makers = [
                self._makers[side].get(storage)
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
            elif ref.dtype in ROUNDING and not self._is_weight(side, storage):
                missing.add(storage)
        return given, missing

    def _is_weight(self, side: int, storage: int) -> bool:
        """Whether a tensor is a parameter or buffer before the step changes it. Where the other run has none, as of a
        bias that is missing, that is the difference."""
        name = self._sides[side].names.get(storage, "")
        return name.startswith(("parameter ", "buffer ")) and storage not in self._makers[side]

    def _counterpart(
        self, side: int, storage: int, without: frozenset[int], made: set[int], named: Pair | None
    ) -> Pair | None:
        """The widest view of a storage that is the same tensor in both runs; other than those that the other stretch
        ``made``. ``named``: the pair that is the same by name. Calls may have been matched by chance: of several
        tensors of either run it is the one with the nearest values."""
        found = [
            pair
            for place, pair in self._of_storage[side].get(storage, ())
            if place not in without and pair[1 - side].storage not in made and not self._is_by_chance(place)
        ]
        if named is not None and named[1 - side].storage not in made:
            found.append(named)
        if len({pair[1 - side].storage for pair in found}) > 1:
            nearest = min(found, key=self._distance)
            found = [pair for pair in found if pair[1 - side].storage == nearest[1 - side].storage]
        return max(found, key=lambda pair: _size(pair[side]), default=None)

    def _is_by_chance(self, place: int) -> bool:
        """Whether two calls were matched though a tensor of one is that of another call's in the other run: sums of
        gradients are made in another order, or of other parts."""
        if place not in self._chance:
            one, other = self._pairs[place]
            pairs = [*zip(one.inputs, other.inputs, strict=False), *zip(one.outputs, other.outputs, strict=False)]
            self._chance[place] = any(self._has_nearer(pair) for pair in pairs if pair[0].shape == pair[1].shape)
        return self._chance[place]

    def _has_nearer(self, pair: Pair) -> bool:
        others = {
            (one.storage, other.storage): (one, other)
            for side in (0, 1)
            for _, (one, other) in self._of_storage[side].get(pair[side].storage, ())
            if (one.storage, other.storage) != (pair[0].storage, pair[1].storage)
        }
        return bool(others) and min(map(self._distance, others.values())) < _NEARER * self._distance(pair)

    def _distance(self, pair: Pair) -> float:
        if pair not in self._distances:
            one, other = (step.tensor(ref) for step, ref in zip(self._sides, pair, strict=True))
            self._distances[pair] = apart(*(part if part.is_complex() else part.double() for part in (one, other)))
        return self._distances[pair]

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
        off = [one.storage for one in verdicts if not one.is_healthy and one.storage in self._makers[1]]
        return replace(worst, first=min(off, key=lambda storage: self._makers[1][storage].index, default=worst.storage))


def _is_healthy(error: CallError, of_parts: CallError, result: Pair, floor: float) -> bool:
    """Whether the error of one side is no larger than the other side's, the roundings and a floor explain."""
    if not all(ref.dtype in ROUNDING for ref in result):
        return error.relative == 0 and error.broken == 0
    rounding = max(ROUNDING[ref.dtype] for ref in result)
    if error.broken > of_parts.broken or error.relative > max(_TIMES * of_parts.relative, _ROUNDINGS * rounding, floor):
        return False
    is_off = abs(error.factor - 1) > max(_TIMES * abs(of_parts.factor - 1), rounding, floor)
    return not (is_off and error.scale > _STANDARD_ERRORS)


def _readers_of(step: Step) -> dict[int, list[int]]:
    """The indexes of the calls that read each storage."""
    found: dict[int, list[int]] = defaultdict(list)
    for call in step.calls:
        for ref in call.inputs:
            found[ref.storage].append(call.index)
    return found


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


def _size(ref: TensorRef) -> int:
    size = 1
    for length in ref.shape:
        size *= length
    return size
