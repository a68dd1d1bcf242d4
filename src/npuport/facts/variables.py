"""Environment variables: those of the CUDA world with what Ascend reads instead, and Ascend's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Status = Literal["renamed", "same", "no-counterpart"]
Kind = Literal["choice", "integer", "file", "folder", "text"]

# Families that only NVIDIA's software reads: a member without an entry of its own has no counterpart.
_FAMILIES = {
    "TORCH_NCCL_": "Read by PyTorch's NCCL backend only; torch_npu has no TORCH_HCCL_ variable for it.",
    "NCCL_": "Read by NCCL only; HCCL has its own variables.",
    "CUDNN_": "cuDNN is not used on an NPU.",
    "CUBLAS_": "cuBLAS is not used on an NPU.",
    "CUDA_": "Read by the CUDA runtime or toolkit only.",
    "NVIDIA_": "Read by NVIDIA's driver or container runtime only.",
    "NVTE_": "Read by Transformer Engine only.",
    "NVSHMEM_": "Read by NVSHMEM only.",
}


@dataclass(frozen=True)
class Variable:
    """An environment variable of the CUDA world.

    ``status`` is "renamed" (set ``counterpart``; ``note`` says where values differ), "same" (leave it) or
    "no-counterpart" (nothing on Ascend reads it; ``note`` says what to use, if anything).
    """

    name: str
    status: Status
    counterpart: str | None
    note: str
    basis: Basis


@dataclass(frozen=True)
class AscendVariable:
    """An environment variable that something on Ascend machines reads: torch_npu, HCCL, CANN, a container.

    ``kind`` "choice" takes one of ``choices``, "integer" a number from ``low`` to ``high`` (None: no bound is known),
    "file" and "folder" a path that exists; of a "text" no form is known.
    """

    name: str
    read_by: str
    meaning: str
    values: str  # what it may be in words, with the default; "" if no document says
    kind: Kind
    low: int | None
    high: int | None
    choices: tuple[str, ...]
    default: str
    basis: Basis


def variable(name: str) -> Variable | None:
    """The entry of an environment variable; None if it is neither known nor of a family of NVIDIA's."""
    return _table().get(name) or _of_family(name)


def all_variables() -> tuple[Variable, ...]:
    """Every entry, in the order of the table."""
    return tuple(_table().values())


def ascend_variable(name: str) -> AscendVariable | None:
    """The entry of a variable such as "HCCL_CONNECT_TIMEOUT"; None if nothing is known of it."""
    return _ascend_table().get(name)


def all_ascend_variables() -> tuple[AscendVariable, ...]:
    """Every entry, by name."""
    return tuple(_ascend_table().values())


def _of_family(name: str) -> Variable | None:
    note = next((note for prefix, note in _FAMILIES.items() if name.startswith(prefix) and name != prefix), None)
    return Variable(name, "no-counterpart", None, note, Basis("its prefix", "inferred")) if note else None


@cache
def _table() -> dict[str, Variable]:
    return {
        row["name"]: Variable(
            name=row["name"],
            status=cast("Status", row["status"]),
            counterpart=row["counterpart"] or None,
            note=row["note"],
            basis=basis(row),
        )
        for row in rows("variables")
    }


@cache
def _ascend_table() -> dict[str, AscendVariable]:
    return {
        row["name"]: AscendVariable(
            name=row["name"],
            read_by=row["read_by"],
            meaning=row["meaning"],
            values=row["values"],
            kind=cast("Kind", row["kind"]),
            low=int(row["low"]) if row["low"] else None,
            high=int(row["high"]) if row["high"] else None,
            choices=tuple(row["choices"].split()),
            default=row["default"],
            basis=basis(row),
        )
        for row in rows("ascend_variables")
    }
