"""Names of ``torch.cuda`` that have a device-agnostic counterpart in ``torch.accelerator``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class AcceleratorName:
    """A name of ``torch.cuda`` and what runs on CUDA, NPU and CPU alike; ``since`` is the first torch that has it."""

    name: str
    accelerator_name: str
    since: tuple[int, int]
    note: str
    basis: Basis


def accelerator_name(name: str) -> AcceleratorName | None:
    """The counterpart of a dotted name such as "torch.cuda.synchronize"; None if it has none.

    ``torch.cuda.get_device_capability`` has none: ``torch.accelerator.get_device_capability`` returns another type, and
    raises RuntimeError with torch_npu 2.13.
    """
    return _table().get(name)


def all_accelerator_names() -> tuple[AcceleratorName, ...]:
    """Every entry, in the order of the table."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, AcceleratorName]:
    return {
        row["name"]: AcceleratorName(
            name=row["name"],
            accelerator_name=row["accelerator_name"],
            since=_version(row["since"]),
            note=row["note"],
            basis=basis(row),
        )
        for row in rows("accelerator")
    }


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)
