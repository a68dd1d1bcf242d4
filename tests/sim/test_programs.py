"""One test for each check of the programs in programs/, which run on the simulated NPU."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

# program: devices, processes
PROGRAMS = {
    "stand_in.py": (2, 1),
    "devices.py": (2, 1),
    "memory.py": (2, 1),
    "random_numbers.py": (2, 1),
    "training.py": (1, 1),
    "mixed_precision.py": (1, 1),
    "data_and_files.py": (2, 1),
    "distributed.py": (2, 2),
}


def checks_in(program: str) -> list[str]:
    """Names of the functions ``check_*`` of a program, in their order."""
    tree = ast.parse((Path(__file__).parent / "programs" / program).read_text())
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")]


@pytest.mark.parametrize(("program", "check"), [(name, check) for name in PROGRAMS for check in checks_in(name)])
def test_program(outcomes: Callable[..., dict[str, str | None]], program: str, check: str) -> None:
    devices, processes = PROGRAMS[program]
    error = outcomes(program, devices, processes)[check]
    assert error is None, error
