"""What a run is to compute in higher precision, as a file that its processes read. Imports no torch."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from npuport.after_import import after_import

PLAN = "NPUPORT_BISECT"
"""Variable: the file of the plan."""

HOW = ("float32", "cpu", "float64")
"""16-bit inputs in float32 on the same device; the CPU's kernels in the same dtype; float64 on the CPU."""


@dataclass(frozen=True)
class Unit:
    """An operator in a module: "gelu" in "blocks.1"."""

    operator: str
    module: str


@dataclass(frozen=True)
class Plan:
    """The units that are raised, and the folder where each process writes down which it has."""

    how: str
    units: frozenset[Unit]
    seen: Path

    def write(self, path: Path) -> None:
        units = sorted((one.operator, one.module) for one in self.units)
        path.write_text(json.dumps({"how": self.how, "seen": str(self.seen), "units": units}), encoding="utf-8")


def read_plan(path: Path) -> Plan:
    document = json.loads(path.read_text(encoding="utf-8"))
    return Plan(document["how"], frozenset(Unit(*one) for one in document["units"]), Path(document["seen"]))


def write_seen(folder: Path, units: list[Unit]) -> None:
    """Write down the units of this process, in the order in which they were first called."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{os.getpid()}.json"
    aside.write_text(json.dumps([(one.operator, one.module) for one in units]), encoding="utf-8")
    aside.replace(folder / f"{os.getpid()}.json")


def read_seen(folder: Path) -> list[Unit]:
    """The units of all processes of a run, those of the one that has most first."""
    lists = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return list(dict.fromkeys(Unit(*one) for many in sorted(lists, key=len, reverse=True) for one in many))


def follow_torch() -> None:
    """Begin to raise when torch has been imported."""
    after_import("torch", _begin)


def _begin() -> None:
    import atexit

    from npuport.precision.bisect.raising import Raising

    raising = Raising(read_plan(Path(os.environ[PLAN])))
    raising.start()
    atexit.register(raising.stop)
