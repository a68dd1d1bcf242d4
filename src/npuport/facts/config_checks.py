"""What options of a training must not say together: whether the training refuses to start, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class ConfigCheck:
    """``level`` "error": the training does not start; "note": an option has no effect, or not the one it names."""

    name: str
    level: Literal["error", "note"]
    next_step: str
    basis: Basis


def config_check(name: str) -> ConfigCheck:
    """The entry of a check.

    Raises:
        KeyError: there is no such check.
    """
    return _table()[name]


def all_config_checks() -> tuple[ConfigCheck, ...]:
    """Every entry, in the order of the table."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, ConfigCheck]:
    return {
        row["name"]: ConfigCheck(
            row["name"], cast("Literal['error', 'note']", row["level"]), row["next_step"], basis(row)
        )
        for row in rows("config_checks")
    }
