"""Environment variables that make a run compute the same bits again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class DeterminismVariable:
    """``value`` is the one that makes ``platform`` ("any", "cuda" or "npu") deterministic."""

    name: str
    value: str
    platform: Literal["any", "cuda", "npu"]
    meaning: str
    basis: Basis


@cache
def all_determinism_variables() -> tuple[DeterminismVariable, ...]:
    """Every entry, in the order of the table."""
    return tuple(
        DeterminismVariable(
            row["name"],
            row["value"],
            cast("Literal['any', 'cuda', 'npu']", row["platform"]),
            row["meaning"],
            basis(row),
        )
        for row in rows("determinism")
    )
