"""What a run with substituted inputs is to do, and what it found, as files. Imports no torch."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from npuport.after_import import after_import

PLAN = "NPUPORT_SUBSTITUTE"
"""Variable: the file of the plan."""


@dataclass(frozen=True)
class Substitution:
    """The folder of the reference's steps, which step, and the folder for what each rank finds."""

    reference: str
    step: int
    found: str

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


@dataclass(frozen=True)
class ModuleError:
    """How far one call of a module is from the reference's, with the reference's input.

    ``before``: of the input that the program itself had (root mean square, as a share), before it was replaced;
    ``own``: of the result. ``rounding``: of the result's dtype.
    """

    path: str
    class_name: str
    before: float
    own: float
    rounding: float


def write_errors(folder: Path, rank: int, errors: list[ModuleError]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".rank{rank}-{os.getpid()}"
    aside.write_text(json.dumps([asdict(one) for one in errors]), encoding="utf-8")
    aside.replace(folder / f"rank{rank}.json")


def read_errors(folder: Path) -> dict[int, list[ModuleError]]:
    """By rank, each in the order of the calls."""
    found = {int(path.stem.removeprefix("rank")): path for path in folder.glob("rank*.json")}
    return {
        rank: [ModuleError(**one) for one in json.loads(path.read_text(encoding="utf-8"))]
        for rank, path in sorted(found.items())
    }


def follow_torch() -> None:
    """Begin to substitute when torch has been imported."""
    after_import("torch", _begin)


def _begin() -> None:
    import atexit

    from npuport.precision.bisect.substituting import Substituting

    plan = Substitution(**json.loads(Path(os.environ[PLAN]).read_text(encoding="utf-8")))
    substituting = Substituting(plan)
    substituting.start()
    atexit.register(substituting.stop)
