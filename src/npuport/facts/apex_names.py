"""Parts of NVIDIA's apex that no class of torch replaces as it stands, and what to do about each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class ApexName:
    """``instead`` says, as the end of a sentence, what takes the place of a name or of all names below it."""

    name: str
    instead: str
    basis: Basis


def apex_name(qualified: str) -> ApexName | None:
    """The entry of a dotted name such as "apex.mlp.MLP", or of the nearest module around it; None if there is none."""
    while qualified:
        if qualified in _table():
            return _table()[qualified]
        qualified = qualified.rpartition(".")[0]
    return None


@cache
def _table() -> dict[str, ApexName]:
    return {row["name"]: ApexName(row["name"], row["instead"], basis(row)) for row in rows("apex_names")}
