"""How far each dtype goes on an NPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Status = Literal["full", "partial", "stored", "refused"]


@dataclass(frozen=True)
class Dtype:
    """A dtype: "full" (ordinary), "partial" (``note`` says where it stops), "stored" (kept and copied) or "refused".

    ``listed_by`` is how many of the 1,091 APIs whose documents list dtypes list this one; None where nobody counted.
    """

    name: str
    status: Status
    listed_by: int | None
    note: str
    basis: Basis


_ALIASES = {"double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32"} | {
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "chalf": "complex32",
}


def dtype(name: str) -> Dtype | None:
    """The entry of a dtype such as "float64", "torch.float64" or "torch.double"; None if nothing is known of it."""
    bare = name.removeprefix("torch.")
    return _table().get(_ALIASES.get(bare, bare))


def all_dtypes() -> tuple[Dtype, ...]:
    """Every entry, in the order of the table."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, Dtype]:
    return {
        row["name"]: Dtype(
            name=row["name"],
            status=cast("Status", row["status"]),
            listed_by=int(row["listed_by"]) if row["listed_by"] else None,
            note=row["note"],
            basis=basis(row),
        )
        for row in rows("dtypes")
    }
