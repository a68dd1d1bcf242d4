"""What two runs may differ in before their first operator: why it matters, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class PreflightCheck:
    """``level`` "important" alone explains a difference of losses; ``rank`` 0 is the likeliest of all to do so."""

    name: str
    rank: int
    level: Literal["important", "minor", "unknown"]
    why: str
    next_step: str
    basis: Basis


def preflight_check(name: str) -> PreflightCheck:
    """The entry of a check.

    Raises:
        KeyError: there is no such check.
    """
    return _table()[name]


def all_preflight_checks() -> tuple[PreflightCheck, ...]:
    """Every entry, the likeliest cause first."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, PreflightCheck]:
    return {
        row["name"]: PreflightCheck(
            row["name"],
            rank,
            cast("Literal['important', 'minor', 'unknown']", row["level"]),
            row["why"],
            row["next_step"],
            basis(row),
        )
        for rank, row in enumerate(rows("preflight_checks"))
    }
