"""npuport starts fast, and reading source needs neither torch nor the command line's libraries."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RUNS = 7
FLOOR_OF_A_USUAL_MACHINE = 0.020  # seconds of CPU for `python -c pass`; slower machines get a budget in proportion


def cpu_seconds(*argv: str) -> float:
    """User and system time of one child process that must succeed."""
    child = subprocess.Popen([sys.executable, *argv], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"python {' '.join(argv)} ended with {child.returncode}"
    return usage.ru_utime + usage.ru_stime


def best(*argv: str) -> float:
    """The best of several runs: other processes can only make a run dearer, never cheaper."""
    return min(cpu_seconds(*argv) for _ in range(RUNS))


@pytest.fixture(scope="module")
def floor() -> float:
    return best("-c", "pass")


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_import_npuport_costs_under_50_ms(floor: float) -> None:
    budget = 0.050 * max(1.0, floor / FLOOR_OF_A_USUAL_MACHINE)
    assert best("-c", "import npuport") - floor < budget


def test_help_costs_under_200_ms(floor: float) -> None:
    budget = 0.200 * max(1.0, floor / FLOOR_OF_A_USUAL_MACHINE)
    assert best("-c", "from npuport.cli import main; main()", "--help") < budget


def test_importing_npuport_loads_neither_torch_nor_typer() -> None:
    loaded = modules_after("import npuport")
    assert "npuport" in loaded
    assert not loaded & {"torch", "torch_npu", "typer", "click", "rich"}


def test_the_command_line_does_not_load_torch() -> None:
    loaded = modules_after("import npuport.cli")
    assert "npuport.cli" in loaded
    assert not loaded & {"torch", "torch_npu", "numpy"}
