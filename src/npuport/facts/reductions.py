"""What HCCL can reduce on each family of chips (HcclAllReduce, HcclReduceScatter, HcclReduce)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Operation = Literal["sum", "prod", "max", "min"]


@dataclass(frozen=True)
class Reductions:
    """Of one family of chips: dtypes, and pairs of operation and dtype that are refused all the same."""

    dtypes: frozenset[str]
    refused: frozenset[tuple[Operation, str]]
    note: str
    basis: Basis

    def takes(self, operation: Operation, dtype: str) -> bool:
        """Whether tensors of ``dtype`` ("int16") can be reduced with ``operation``."""
        return dtype in self.dtypes and (operation, dtype) not in self.refused


def reductions(family: str) -> Reductions | None:
    """The entry of a family such as "A2" (see ``npuport.facts.chips``); None where nothing was found."""
    return _table().get(family)


@cache
def _table() -> dict[str, Reductions]:
    return {
        row["name"]: Reductions(
            frozenset(row["dtypes"].split()),
            frozenset(cast("tuple[Operation, str]", tuple(pair.split("/"))) for pair in row["refused"].split()),
            row["note"],
            basis(row),
        )
        for row in rows("reductions")
    }
