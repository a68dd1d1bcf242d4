"""Whether two stretches of different operators compute the same: a fused operator against its parts, say.

The reference's stretch is replayed in float64 with the tensors that the candidate gave to its own: what comes out is
what the candidate's should have given, and no definition of a fused operator is needed. Where the reference's cannot
be replayed, for it is the one with the fused operator, it is done the other way round.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from npuport.precision.operators.agreement import ROUNDING, apart
from npuport.precision.operators.alignment import Alignment, Difference
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.renames import plain_path
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
_NO_ERROR = CallError(relative=0.0, peak=0.0, scale=0.0, factor=1.0, broken=0, effective=1.0)

Pair = tuple[TensorRef, TensorRef]
"""The same tensor of the reference and of the candidate."""


@dataclass(frozen=True)
class Judged:
    """What replaying told of a stretch: the error of the result that is the furthest off. ``is_reversed``: it is the
    reference's, measured by the candidate's calls."""

    is_healthy: bool
    error: CallError
    storage: int | None = None  # of the candidate, with that result
    is_reversed: bool = False


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
        self._indexes = [one.index for one, _ in alignment.pairs], [other.index for _, other in alignment.pairs]
        self._of_storage: tuple[dict[int, list[tuple[int, Pair]]], ...] = (defaultdict(list), defaultdict(list))
        self._used: tuple[dict[int, list[tuple[int, Pair]]], ...] = (defaultdict(list), defaultdict(list))
        self._makers = tuple(
            {ref.storage: call.index for call in step.calls for ref in call.outputs} for step in self._sides
        )
        self._readers = tuple(_readers_of(step) for step in self._sides)
        left = _last_of_names(reference), _last_of_names(candidate)
        self._left = [
            (ref, left[1][name])
            for name, ref in left[0].items()
            if name in left[1] and ref.shape == left[1][name].shape and ref.dtype in ROUNDING
        ]
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
            judged.storage in {ref.storage for call in other.candidate for ref in call.outputs}
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
        for reverse in (False, True):
            parts = candidate if reverse else reference
            replay = Replay(self._sides[int(reverse)], parts, [pair[int(reverse)] for pair in results])
            made = {ref.storage for call in (reference if reverse else candidate) for ref in call.outputs}
            given, is_mixed = self._given(replay, int(reverse), without, made)
            expected = replay.results(given)
            if expected is None:
                continue
            own = replay.results([]) or expected
            floor = max(_TIMES * self._noise[1 - int(reverse)], usual if is_mixed else 0.0)
            return self._judge(results, expected, own, int(reverse), floor)
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
                    is_later = self._makers[1 - side].get(pair[1 - side].storage, -1) > ends[1 - side]
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

    def _given(
        self, replay: Replay, side: int, without: frozenset[int], made: set[int]
    ) -> tuple[list[tuple[TensorRef, Tensor]], bool]:
        """The other side's tensors for what a stretch needs, other than those that its stretch ``made``; and whether
        some have none."""
        given, is_mixed = [], False
        for storage, ref in replay.needed().items():
            found = self._counterpart(side, storage, without, made)
            if found is not None:
                given.append((found[side], self._sides[1 - side].tensor(found[1 - side])))
            else:
                is_mixed |= ref.dtype in ROUNDING
        return given, is_mixed

    def _counterpart(self, side: int, storage: int, without: frozenset[int], made: set[int]) -> Pair | None:
        """The widest view of a storage that is the same tensor in both runs."""
        found = [
            pair
            for place, pair in self._of_storage[side].get(storage, ())
            if place not in without and pair[1 - side].storage not in made
        ]
        return max(found, key=lambda pair: _size(pair[side]), default=None)

    def _judge(
        self, results: Sequence[Pair], expected: Sequence[Tensor], own: Sequence[Tensor], side: int, floor: float
    ) -> Judged:
        """The verdict on the results of one side's replay: ``expected`` with the other side's tensors, ``own`` with its
        own. Of several results the one that is the furthest off decides."""
        verdicts = []
        for pair, truth, of_own in zip(results, expected, own, strict=True):
            error = error_between(self._sides[1 - side].tensor(pair[1 - side]), truth)
            of_parts = error_between(self._sides[side].tensor(pair[side]), of_own)
            verdicts.append(Judged(_is_healthy(error, of_parts, pair, floor), error, pair[1].storage, bool(side)))
        return max(verdicts, key=lambda one: (not one.is_healthy, one.error.broken, one.error.relative))


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


def _last_of_names(step: Step) -> dict[str, TensorRef]:
    """The last value of each named tensor, such as a parameter or a state of an optimizer, that a call made."""
    found: dict[str, TensorRef] = {}
    for call in step.calls:
        for ref in call.outputs:
            if (name := step.names.get(ref.storage)) is not None:
                kind, of, path = name.rpartition(" ")
                found[f"{kind}{of}{plain_path(path)}"] = ref
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
