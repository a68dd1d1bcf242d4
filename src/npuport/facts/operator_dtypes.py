"""Which dtypes an aten operator does not take on the chips of a family, and who says so."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from npuport.facts._tables import DATA
from npuport.findings import Basis


@dataclass(frozen=True)
class RefusedDtypes:
    """Dtypes of which an operator takes none, where all tensors among ``arguments`` that are given have that dtype.

    ``certainty``: "stated" where CANN's document and source both refuse, or torch_npu itself does; "unlisted" where a
    document merely does not name the dtype, or sources disagree.
    ``by``: the function of CANN that refuses ("aclnnMm"), or the type of a compiled operator ("SoftmaxV2"); empty where
    torch_npu refuses with the text ``error``. ``accepts``: what ``parameter`` of that function takes instead.
    """

    operator: str  # such as "aten::mm" or "aten::add.Tensor"
    dtypes: tuple[str, ...]
    arguments: tuple[int, ...]  # positions in the operator's schema
    certainty: Literal["stated", "unlisted"]
    by: str
    parameter: str
    accepts: tuple[str, ...]
    error: str
    basis: Basis


@cache
def refused_dtypes(family: str) -> tuple[RefusedDtypes, ...]:
    """Every entry for the chips of a family (``Chip.family``), by operator; none for a family that nobody measured."""
    document = _document()
    basis = Basis(document["source"], "measured", document["version"])
    return tuple(
        RefusedDtypes(
            operator=operator,
            dtypes=tuple(entry["dtypes"]),
            arguments=tuple(entry["arguments"]),
            certainty=entry["certainty"],
            by=entry.get("by", ""),
            parameter=entry.get("parameter", ""),
            accepts=tuple(entry.get("accepts", ())),
            error=entry.get("error", ""),
            basis=basis,
        )
        for operator, entries in document["operators"].items()
        for entry in entries
        if family in entry["families"]
    )


@cache
def _document() -> Any:
    return json.loads((DATA / "operator_dtypes.json").read_text(encoding="utf-8"))
