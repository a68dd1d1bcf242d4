"""Times of a chat in figures: percentiles, rates, and whether they meet a need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TurnTimes:
    """Seconds of one turn of one chat.

    ``context`` tokens are in the cache when the first token comes, of which this turn computed ``computed``.
    ``first`` is the time to the first token with the cache kept from the turns before, ``first_afresh`` that of the
    same context computed as a whole. ``later`` has the time of each further token.
    """

    turn: int
    context: int
    computed: int
    first: float
    first_afresh: float
    later: tuple[float, ...]


@dataclass(frozen=True)
class CaseTimes:
    """One batch size and one context length: every turn of every measured chat; none where memory ran out."""

    batch: int
    context: int
    turns: tuple[TurnTimes, ...]
    peak_bytes: int

    @property
    def out_of_memory(self) -> bool:
        return not self.turns

    def of_turn(self, number: int) -> list[TurnTimes]:
        """That turn of each chat."""
        return [one for one in self.turns if one.turn == number]

    @property
    def later(self) -> list[float]:
        """Seconds of each token but the first ones, over all turns and chats."""
        return [seconds for one in self.turns for seconds in one.later]


@dataclass(frozen=True)
class Need:
    """``tokens_per_second`` of each sequence after its first token; ``first_token`` in seconds, None: not asked for."""

    tokens_per_second: float | None
    first_token: float | None


@dataclass(frozen=True)
class Judgement:
    """One figure beside the need, both in the need's unit (tokens/s, or seconds)."""

    batch: int
    context: int
    what: str
    measured: float | None
    wanted: float
    met: bool


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0 to 1) of the values lie, interpolated; as numpy.percentile.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def tokens_per_second(seconds: Sequence[float]) -> float:
    """The rate of one sequence over these tokens: their number by their time, so that slow tokens count in full."""
    return len(seconds) / sum(seconds)


def judged(cases: Sequence[CaseTimes], need: Need) -> list[Judgement]:
    """Each case beside the need: the mean rate, and the 95th percentile of times to first tokens with the cache kept.

    A case for which memory ran out meets no need.
    """
    found = []
    for case in cases:
        if need.tokens_per_second is not None:
            rate = None if case.out_of_memory else tokens_per_second(case.later)
            met = rate is not None and rate >= need.tokens_per_second
            found.append(Judgement(case.batch, case.context, "tokens/s", rate, need.tokens_per_second, met))
        if need.first_token is not None:
            first = None if case.out_of_memory else percentile([one.first for one in case.turns], 0.95)
            met = first is not None and first <= need.first_token
            found.append(Judgement(case.batch, case.context, "first token", first, need.first_token, met))
    return found
