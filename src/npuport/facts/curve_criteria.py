"""Published criteria for training curves of two platforms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class CurveCriterion:
    """``measure`` is "first" (the first step) or "mean" (over all steps from ``from_step`` on).

    It holds if the difference is below ``absolute``, or below ``relative`` as a share of the reference; None: no limit.
    """

    name: str
    metric: str
    measure: Literal["first", "mean"]
    absolute: float | None
    relative: float | None
    from_step: int
    basis: Basis


@cache
def all_curve_criteria() -> tuple[CurveCriterion, ...]:
    """Every criterion, in the order of the table."""
    return tuple(
        CurveCriterion(
            name=row["name"],
            metric=row["metric"],
            measure=cast("Literal['first', 'mean']", row["measure"]),
            absolute=float(row["absolute"]) if row["absolute"] else None,
            relative=float(row["relative"]) if row["relative"] else None,
            from_step=int(row["from_step"]),
            basis=basis(row),
        )
        for row in rows("curve_criteria")
    )
