"""What lies under a path that `npuport precision compare` is given: our recorded steps, or a dump of msprobe."""

from __future__ import annotations

import re
from pathlib import Path

from npuport.errors import UserError
from npuport.precision.operators.calls import Step, read_step

_STEP = re.compile(r"step(\d+)/rank(\d+)\.pt$")


def recorded_steps(folder: Path) -> dict[tuple[int, int], Path]:
    """The files of our recorded steps in a folder, by step and rank.

    Raises:
        UserError: the folder does not exist, is a file, or holds none.
    """
    if folder.is_file():
        raise UserError("{path} is a file; give the folder of a run, or two files.", path=folder)
    if not folder.is_dir():
        raise UserError("{path} does not exist.", path=folder)
    found = {}
    for file in folder.rglob("rank*.pt"):
        match = _STEP.search(file.as_posix())
        if match is not None:
            found[int(match.group(1)), int(match.group(2))] = file
    if not found:
        raise UserError("{path} holds no recorded steps (step0/rank0.pt, …).", path=folder)
    return found


def steps_in(path: Path) -> dict[tuple[int, int], Path]:
    """The file of each step and rank under a path, ours or msprobe's.

    Raises:
        UserError: the path does not exist, or holds neither.
    """
    from npuport.precision.msprobe.reading import find_dumps, is_dump

    return find_dumps(path) if is_dump(path) else recorded_steps(path)


def read_any_step(file: Path) -> Step:
    """The step in a file of ours (.pt) or in one of msprobe (dump.json, debug.json).

    Raises:
        UserError: the file is missing, or neither.
    """
    if file.suffix == ".json":
        from npuport.precision.msprobe.steps import read_step_of_msprobe

        return read_step_of_msprobe(file)
    return read_step(file)
