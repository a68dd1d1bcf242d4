"""What makes training on an NPU faster, as far as documents or measurements say so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class PerformanceFact:
    """One setting or property of NPUs that decides about speed."""

    name: str
    fact: str
    basis: Basis


@cache
def all_performance_facts() -> tuple[PerformanceFact, ...]:
    """Every entry, in the order of the table."""
    return tuple(PerformanceFact(row["name"], row["fact"], basis(row)) for row in rows("performance_advice"))


def performance_fact(name: str) -> PerformanceFact:
    """The entry of a name.

    Raises:
        KeyError: there is none.
    """
    return {one.name: one for one in all_performance_facts()}[name]
