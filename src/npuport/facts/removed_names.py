"""Names of torch that newer releases lack, or keep only to raise an error, and what takes their places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class RemovedName:
    """``since`` is a release of torch that lacks the name; it may have gone before.

    ``replacement`` is the statement that binds the last part of ``name`` where that is imported, a dotted name where
    only the spelling changed, or None where ``note`` says what a person has to do.
    """

    name: str
    since: str
    replacement: str | None
    note: str
    basis: Basis


def removed_name(qualified: str) -> RemovedName | None:
    """The entry of a dotted name such as "torch._six.inf"; None if the name is not known to have gone."""
    return _table().get(qualified)


def all_removed_names() -> tuple[RemovedName, ...]:
    """Every entry, in the order of the table."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, RemovedName]:
    return {
        row["name"]: RemovedName(row["name"], row["since"], row["replacement"] or None, row["note"], basis(row))
        for row in rows("removed_names")
    }
