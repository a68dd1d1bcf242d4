"""Names of torch_npu that its documents or its own warnings advise against, and what takes their places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class DeprecatedName:
    """A name such as "torch_npu.npu_iou".

    ``replacement`` says in a few words what to use, None where the source names nothing. ``maintained`` is False where
    the documents say that the kernel is not kept up any more and its precision and speed are not warranted.
    """

    name: str
    replacement: str | None
    maintained: bool
    basis: Basis


def deprecated_name(qualified: str) -> DeprecatedName | None:
    """The entry of a dotted name; ``torch.npu`` counts as ``torch_npu.npu``. None if nothing is known against it."""
    if qualified.startswith("torch.npu."):
        qualified = f"torch_npu.npu.{qualified.removeprefix('torch.npu.')}"
    return _table().get(qualified)


def all_deprecated_names() -> tuple[DeprecatedName, ...]:
    """Every entry, in the order of the table."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, DeprecatedName]:
    return {
        row["name"]: DeprecatedName(row["name"], row["replacement"] or None, row["maintained"] == "yes", basis(row))
        for row in rows("deprecated_names")
    }
