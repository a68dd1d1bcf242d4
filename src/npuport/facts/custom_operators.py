"""torch_npu's own operators, and the versions of torch whose torch_npu has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from packaging.version import Version

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class CustomOperator:
    """An operator such as ``torch_npu.npu_rms_norm``.

    ``first_torch`` and ``last_torch`` are minor versions such as "2.6"; the newest release of torch_npu for a version
    is meant, and None says that no version has dropped it. The table begins with torch 2.1.
    """

    name: str
    first_torch: str
    last_torch: str | None
    basis: Basis

    def is_in(self, torch: str) -> bool:
        """Whether the newest torch_npu for a version of torch such as "2.6.0" has the operator."""
        minor = Version(".".join(map(str, Version(torch).release[:2])))
        return Version(self.first_torch) <= minor and (self.last_torch is None or minor <= Version(self.last_torch))

    @property
    def range_in_words(self) -> str:
        if self.last_torch is None:
            return f"it is known from torch {self.first_torch} on"
        return f"it is known from torch {self.first_torch} to {self.last_torch}"


@dataclass(frozen=True)
class OperatorSchema:
    """A signature as the dispatcher of torch_npu has it, such as "npu_swiglu(Tensor self, int dim=-1) -> Tensor"."""

    text: str
    basis: Basis


def custom_operator(name: str) -> CustomOperator | None:
    """The entry of an operator such as "npu_rms_norm"; None if nothing is known of it."""
    return _table().get(name)


def operator_schemas(name: str) -> tuple[OperatorSchema, ...]:
    """The signatures of an operator such as "npu_rms_norm", one for each overload; () if none is known."""
    return _schemas().get(name, ())


def all_custom_operators() -> tuple[CustomOperator, ...]:
    """Every entry, by name."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, CustomOperator]:
    return {
        row["name"]: CustomOperator(row["name"], row["first_torch"], row["last_torch"] or None, basis(row))
        for row in rows("custom_operators")
    }


@cache
def _schemas() -> dict[str, tuple[OperatorSchema, ...]]:
    found: dict[str, tuple[OperatorSchema, ...]] = {}
    for row in rows("operator_schemas"):
        found[row["name"]] = (*found.get(row["name"], ()), OperatorSchema(row["schema"], basis(row)))
    return found
