"""Ascend chips by the name CANN gives them (aclrtGetSocName), and what differs between them for a training program."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from npuport.facts._tables import basis, rows
from npuport.findings import Basis

Family = Literal["910", "A2", "A3", "950", "310P", "310B"]
Overflow = Literal["saturation", "both", "inf_nan"]

DEFAULT_CHIP = "Ascend910B3"


@dataclass(frozen=True)
class Chip:
    """A chip.

    ``overflow``: "saturation" clips to the largest finite value and turns NaN into 0 (only the status flag shows it),
    "inf_nan" follows IEEE, "both" follows IEEE unless INF_NAN_MODE_ENABLE=0 and INF_NAN_MODE_FORCE_DISABLE=1.
    ``memory_gib`` and ``ai_cores`` are None where no source was found.
    """

    name: str
    family: Family
    soc_version: int  # torch.npu.get_soc_version(); torch_npu compares these numbers
    bf16: bool
    overflow: Overflow
    memory_gib: int | None  # on the board; a driver leaves less to programs
    ai_cores: int | None
    note: str
    basis: Basis

    @property
    def jit_compile_by_default(self) -> bool:
        """Whether operators are compiled for each shape unless set_compile_mode(jit_compile=False) says otherwise.

        Source: op-plugin documents on torch_npu.npu.set_compile_mode (on for 910 and 310P, off for A2 and A3).
        """
        return self.family in ("910", "310P")


def chip(name: str = DEFAULT_CHIP) -> Chip | None:
    """The entry of a chip such as "Ascend910B3", "910B3" or "ascend950dt_9571"; None if there is no such chip."""
    wanted = name.lower().removeprefix("ascend")
    if wanted.startswith(("950pr", "950dt")):
        wanted = "950"
    return _table().get(wanted)


def all_chips() -> tuple[Chip, ...]:
    """Every entry, by rising ``soc_version``."""
    return tuple(_table().values())


@cache
def _table() -> dict[str, Chip]:
    return {
        row["name"].lower().removeprefix("ascend"): Chip(
            name=row["name"],
            family=cast("Family", row["family"]),
            soc_version=int(row["soc_version"]),
            bf16=row["bf16"] == "yes",
            overflow=cast("Overflow", row["overflow"]),
            memory_gib=int(row["memory_gib"]) if row["memory_gib"] else None,
            ai_cores=int(row["ai_cores"]) if row["ai_cores"] else None,
            note=row["note"],
            basis=basis(row),
        )
        for row in rows("chips")
    }


@dataclass(frozen=True)
class ChipFamily:
    """What CANN packages for a family: the folder of its compiled operators, and the name in the package's file.

    ``training`` says whether torch_npu's documents name the family for training.
    """

    name: Family
    kernels: str  # such as "ascend910b"
    older_package: str  # before CANN 8.5, such as "Ascend-cann-kernels-910b"; empty where there was none
    package: str  # from CANN 8.5 on, such as "Ascend-cann-910b-ops"
    training: bool
    basis: Basis


def chip_family(name: str) -> ChipFamily:
    """The entry of a family such as "A2".

    Raises:
        KeyError: there is no such family.
    """
    return _families()[name]


@cache
def _families() -> dict[str, ChipFamily]:
    return {
        row["name"]: ChipFamily(
            name=cast("Family", row["name"]),
            kernels=row["kernels"],
            older_package=row["older_package"],
            package=row["package"],
            training=row["training"] == "yes",
            basis=basis(row),
        )
        for row in rows("chip_families")
    }
