"""What `npuport doctor` checks: each check's name, how bad it is, and why it matters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis, Severity


@dataclass(frozen=True)
class EnvironmentCheck:
    """A state of a machine in which training fails, differs or is slow; ``why`` is one English sentence or two."""

    code: str  # such as "ND101"
    name: str
    severity: Severity
    why: str
    basis: Basis


def environment_check(code: str) -> EnvironmentCheck:
    """The entry of a check.

    Raises:
        KeyError: there is no such check.
    """
    return _table()[code]


def all_environment_checks() -> tuple[EnvironmentCheck, ...]:
    """Every entry, in the order of the codes."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, EnvironmentCheck]:
    return {
        row["code"]: EnvironmentCheck(
            code=row["code"],
            name=row["name"],
            severity=Severity(row["severity"]),
            why=row["why"],
            basis=basis(row),
        )
        for row in rows("environment_checks")
    }
