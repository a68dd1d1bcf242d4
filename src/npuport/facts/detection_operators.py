"""Compiled operators of detection libraries, and where they run on an NPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class DetectionOperator:
    """An operator without an NPU kernel of its library's own.

    ``kernel`` is "cpu" where torch_npu sends it to the CPU, and "none" where its library raises an error. ``instead``
    says, as the end of a sentence, what computes it on an NPU; "" where nothing is documented.
    """

    name: str
    kernel: Literal["cpu", "none"]
    instead: str
    basis: Basis


def detection_operator(qualified: str) -> DetectionOperator | None:
    """The entry of a dotted name such as "torchvision.ops.nms"; None if it has a kernel or is not known."""
    return _table().get(qualified)


def all_detection_operators() -> tuple[DetectionOperator, ...]:
    """Every entry, in the order of the table."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, DetectionOperator]:
    return {
        row["name"]: DetectionOperator(
            row["name"], cast("Literal['cpu', 'none']", row["kernel"]), row["instead"], basis(row)
        )
        for row in rows("detection_operators")
    }
