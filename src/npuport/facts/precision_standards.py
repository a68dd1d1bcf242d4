"""Published standards for the error of one operator alone: which standard an operator has, and its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Standard = Literal["equal", "absolute", "ulp", "thousandth", "ratio"]
"""What is asked of a result:

- "equal": every bit, for values are moved, chosen or compared;
- "absolute": each value within a relative tolerance, small values within an absolute one;
- "ulp": few values further off than some units in the last place (products of matrices);
- "thousandth": nearly all values within a thousandth (convolutions);
- "ratio": an error not much larger than that of another device on the same call.
"""


@dataclass(frozen=True)
class OperatorStandard:
    """The standard of an operator, and how much care it wants: "L0", "L1" or "L2", the strictest."""

    standard: Standard
    care: str
    basis: Basis | None


@cache
def _standards() -> dict[str, OperatorStandard]:
    return {
        row["name"]: OperatorStandard(cast("Standard", row["standard"]), row["care"], basis(row))
        for row in rows("precision_standards")
    }


def standard_of(name: str) -> OperatorStandard:
    """The standard of an operator without namespace and overload, such as "addmm"; what no table names has "ratio"."""
    return _standards().get(name) or OperatorStandard("ratio", "L0", None)


@cache
def limits(standard: Standard, of: str) -> dict[str, float]:
    """The numbers of a standard for a dtype such as "float32" (for "ratio": a care level); empty where it has none.

    "absolute": rtol, small (values below it), small_atol. "ulp": far (in units in the last place), share of values
    that may be, mean. "thousandth": far (relative), share. "ratio": small_share, rms, max, mean for a care level,
    floor for a dtype (smaller errors count as that large).
    """
    return {
        row["measure"]: float(row["limit"])
        for row in rows("precision_limits")
        if row["standard"] == standard and row["of"] in ("", of)
    }
