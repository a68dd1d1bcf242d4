"""Which tensor of one run is the same as which of the other, where their calls are not the same."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import inf, prod

from npuport.precision.operators.agreement import ROUNDING, apart
from npuport.precision.operators.alignment import Alignment
from npuport.precision.operators.calls import Call, Step, TensorRef
from npuport.precision.operators.versions import Versions

_NEARER = 0.01  # the same tensor is nearer than one that was matched by chance by this factor

Pair = tuple[TensorRef, TensorRef]
"""The same tensor of the reference and of the candidate."""

_Calls = tuple[Sequence[Call], Sequence[Call]]
"""A stretch of calls of the reference, and one of the candidate; either may be empty."""


class Counterparts:
    """The tensors of two aligned steps with tensors. A side is 0, the reference, or 1, the candidate; a place is that
    of a pair of the alignment."""

    def __init__(self, alignment: Alignment, reference: Step, candidate: Step) -> None:
        self._sides = (reference, candidate)
        self._pairs = alignment.pairs
        self._chance: dict[int, bool] = {}
        self._distances: dict[Pair, float] = {}
        self._indexes = [one.index for one, _ in alignment.pairs], [other.index for _, other in alignment.pairs]
        self._of_storage: tuple[dict[int, list[tuple[int, Pair]]], ...] = (defaultdict(list), defaultdict(list))
        self._used: tuple[dict[int, list[tuple[int, Pair]]], ...] = (defaultdict(list), defaultdict(list))
        self.makers = tuple(
            {ref.storage: call for call in reversed(step.calls) for ref in call.outputs} for step in self._sides
        )
        """Of each side the call that made a storage."""
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

    def places(self, side: int, span: range) -> range:
        """The places of the pairs with a call of one side in a span of indexes."""
        return range(bisect_left(self._indexes[side], span.start), bisect_left(self._indexes[side], span.stop))

    def results(self, calls: _Calls, without: frozenset[int]) -> Iterator[Pair]:
        """What the stretches made and aligned calls use, and the parameters and states that they left."""
        made = [{ref.storage for call in own for ref in call.outputs} for own in calls]
        yield from (pair for pair in self._left if pair[0].storage in made[0] and pair[1].storage in made[1])
        seen: set[Pair] = set()
        ends = self._ends(calls)
        for side, own in enumerate(made):
            for storage in own:
                for place, pair in self._used[side].get(storage, ()):
                    # What the other run makes later belongs to another stretch: calls were matched by chance.
                    maker = self.makers[1 - side].get(pair[1 - side].storage)
                    is_later = maker is not None and maker.index > ends[1 - side]
                    if place not in without and pair not in seen and not is_later:
                        seen.add(pair)
                        yield pair

    def _ends(self, calls: _Calls) -> tuple[int, int]:
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

    def are_used(self, stretches: _Calls) -> bool:
        """Whether calls outside of two stretches use what was made inside."""
        for readers, own in zip(self._readers, stretches, strict=True):
            inside = {call.index for call in own}
            made = {ref.storage for call in own for ref in call.outputs}
            if any(index not in inside for storage in made for index in readers.get(storage, ())):
                return True
        return False

    def named_before(self, calls: _Calls) -> tuple[dict[int, Pair], ...]:
        """The tensors that are the same by name before two stretches: by the reference's storage and by the
        candidate's."""
        return self._versions.before(self._starts(calls))

    def _starts(self, calls: _Calls) -> tuple[float, float]:
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

    def counterpart(
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
            nearest = min(found, key=self.distance)
            found = [pair for pair in found if pair[1 - side].storage == nearest[1 - side].storage]
        return max(found, key=lambda pair: prod(pair[side].shape), default=None)

    def is_weight(self, side: int, storage: int) -> bool:
        """Whether a tensor is a parameter or buffer before the step changes it. Where the other run has none, as of a
        bias that is missing, that is the difference."""
        name = self._sides[side].names.get(storage, "")
        return name.startswith(("parameter ", "buffer ")) and storage not in self.makers[side]

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
        return bool(others) and min(map(self.distance, others.values())) < _NEARER * self.distance(pair)

    def distance(self, pair: Pair) -> float:
        """How far the two are apart."""
        if pair not in self._distances:
            one, other = (step.tensor(ref) for step, ref in zip(self._sides, pair, strict=True))
            self._distances[pair] = apart(*(part if part.is_complex() else part.double() for part in (one, other)))
        return self._distances[pair]


def _readers_of(step: Step) -> dict[int, list[int]]:
    """The indexes of the calls that read each storage."""
    found: dict[int, list[int]] = defaultdict(list)
    for call in step.calls:
        for ref in call.inputs:
            found[ref.storage].append(call.index)
    return found
