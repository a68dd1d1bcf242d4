"""Which call with an error of its own explains that a stretch of other operators is off.

A stretch is judged as a whole, with the calls that were matched inside of it. One wrong call makes all differences seem
wrong that are judged together with it, though they compute what the reference computes.
"""

from __future__ import annotations

from collections.abc import Sequence

from npuport.precision.operators.alignment import Difference
from npuport.precision.operators.calls import Call, Step
from npuport.precision.operators.own_errors import Replayed, error_without_match, noise_of
from npuport.precision.operators.stretches import Stretches
from npuport.precision.operators.suspicion import Suspect


class Causes:
    """The calls of a candidate with an error of their own: those that were matched, and those in stretches."""

    def __init__(
        self, stretches: Stretches, candidate: Step, replayed: Sequence[Replayed], own: Sequence[Suspect]
    ) -> None:
        """``own``: the suspects among the calls that were ``replayed``."""
        self._stretches, self._candidate = stretches, candidate
        self._noise = noise_of(replayed)
        self._known: dict[int, Suspect | None] = dict.fromkeys(one.call.index for one in replayed)
        self._known.update((one.call.index, one) for one in own)

    def of(self, difference: Difference, usual: float) -> Suspect | None:
        """The surest call in or beside a stretch that is off, if the stretch is the same program as the reference's.
        ``usual``: how far apart the two runs are at that place."""
        around = [found for call in self._stretches.around(difference) if (found := self._suspect(call)) is not None]
        if not around or not self._stretches.is_same_program(difference, usual):
            return None
        return max(around, key=lambda one: (one.times or 0.0, -one.call.index))

    def _suspect(self, call: Call) -> Suspect | None:
        if call.index not in self._known:
            self._known[call.index] = error_without_match(call, self._candidate, self._noise)
        return self._known[call.index]
