"""Advice on performance that documents and other tools give, and what became of it here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Outcome = Literal["finding", "source", "doctor", "part", "left out"]


@dataclass(frozen=True)
class KnownAdvice:
    """One piece of advice.

    ``outcome``: a finding in profiles, a rule on source, a check of ``npuport doctor``, a part of a report, or left
    out; the ``note`` says why, or what differs. ``codes`` are those under which it is found.
    """

    name: str
    outcome: Outcome
    codes: tuple[str, ...]
    note: str
    basis: Basis  # who gives it


@cache
def all_known_advice() -> tuple[KnownAdvice, ...]:
    """Every entry, in the order of the table."""
    return tuple(
        KnownAdvice(row["name"], cast("Outcome", row["outcome"]), tuple(row["codes"].split()), row["note"], basis(row))
        for row in rows("known_advice")
    )
