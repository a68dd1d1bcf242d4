"""Fused operators for what training code writes out: how each is called, and what it asks of its tensors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class FusedOperator:
    """An operator that computes several steps at one go.

    ``call`` is how it is called, and ``limits`` say in one clause what it asks of its inputs. ``has_gradient`` is
    whether it can be trained through. ``families`` are the chips that its source names for what is said here; empty
    where it makes no difference.
    """

    name: str
    call: str
    limits: str
    has_gradient: bool
    families: frozenset[str]
    basis: Basis


def fused_operator(name: str) -> FusedOperator | None:
    """The entry of an operator such as "npu_rms_norm"; None if nothing is known of it."""
    return _table().get(name)


def all_fused_operators() -> tuple[FusedOperator, ...]:
    """Every entry, by name."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, FusedOperator]:
    return {
        row["name"]: FusedOperator(
            name=row["name"],
            call=row["call"],
            limits=row["limits"],
            has_gradient=row["gradient"] == "yes",
            families=frozenset(row["families"].split()),
            basis=basis(row),
        )
        for row in rows("fused_operators")
    }
