"""Names of torch outside ``torch.cuda`` that depend on CUDA: backends, distributed, profiler, AMP, extensions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

_IGNORED_MODULES = ("torch.backends.cudnn", "torch.backends.cuda")

Status = Literal["same", "renamed", "missing", "no-effect"]


@dataclass(frozen=True)
class TorchName:
    """A name of torch and what it means on an NPU.

    ``status`` is "same" (works; ``note`` may ask for an argument), "renamed" (use ``npu_name``), "missing" (fails, or
    is false there) or "no-effect" (accepted and ignored). ``import_from`` is as in ``CudaName``.
    """

    name: str
    status: Status
    npu_name: str | None
    import_from: str | None
    note: str
    basis: Basis


def torch_name(qualified: str) -> TorchName | None:
    """The entry of a dotted name such as "torch.backends.cudnn.benchmark"; None if nothing is known of it.

    A setting of ``torch.backends.cudnn`` or ``torch.backends.cuda`` that has no entry is taken to have no effect.
    """
    table = _table()
    if qualified in table:
        return table[qualified]
    above = next((table[module] for module in _IGNORED_MODULES if qualified.startswith(module + ".")), None)
    return above and replace(above, name=qualified, basis=replace(above.basis, certainty="inferred"))


def all_torch_names() -> tuple[TorchName, ...]:
    """Every entry, in the order of the table."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, TorchName]:
    return {
        row["name"]: TorchName(
            name=row["name"],
            status=cast("Status", row["status"]),
            npu_name=row["npu_name"] or None,
            import_from=row["import_from"] or None,
            note=row["note"],
            basis=basis(row),
        )
        for row in rows("torch_names")
    }
