"""The search: which operators, and then in which modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from npuport.precision.bisect.plan import Unit
from npuport.precision.bisect.smallest import OutOfRunsError, smallest

Outcome = Literal["found", "right as it is", "stays", "out of runs"]


class Runs(Protocol):
    """What the search asks: as npuport.precision.bisect.runs has it."""

    def goes(self, units: Sequence[Unit]) -> bool: ...

    def units(self) -> list[Unit]: ...


@dataclass(frozen=True)
class Answer:
    """``units``: the smallest set known with which the difference goes, by the order of their first call.
    "stays": it does not go with all raised; "out of runs": the set may still be smaller."""

    outcome: Outcome
    units: tuple[Unit, ...] = ()


def search(runs: Runs) -> Answer:
    """Find the smallest set of operators in modules that makes the difference go."""
    best: tuple[Unit, ...] = ()

    def better(units: Sequence[Unit]) -> None:
        nonlocal best
        best = tuple(units)

    try:
        if runs.goes(()):
            return Answer("right as it is")
        units = runs.units()
        if not runs.goes(units):
            return Answer("stays")
        better(units)

        def of_kinds(kinds: Sequence[str]) -> list[Unit]:
            return [unit for unit in units if unit.operator in set(kinds)]

        kinds = tuple(dict.fromkeys(unit.operator for unit in units))
        found = smallest(kinds, lambda part: runs.goes(of_kinds(part)), lambda part: better(of_kinds(part)))
        return Answer("found", smallest(of_kinds(found), runs.goes, better))
    except OutOfRunsError:
        return Answer("out of runs", best)
