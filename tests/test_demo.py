"""The demonstration (`make demo`) compares what it claims to compare, and draws in any terminal."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

DEMO = Path(__file__).resolve().parents[1] / "tools" / "demo.py"
RUNS = {"original, CPU": [4.0, 3.0, 2.0, 1.5], "converted, simulated NPU": [4.0, 3.0, 2.0, 1.5]}


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_difference_is_relative_and_the_largest(demo: ModuleType) -> None:
    assert demo.largest_relative_difference([4.0, 2.0], [4.0, 2.0]) == 0.0
    assert demo.largest_relative_difference([4.0, 2.0], [4.4, 1.0]) == pytest.approx(0.5)


def test_nan_is_never_within_tolerance(demo: ModuleType) -> None:
    assert not demo.largest_relative_difference([4.0, 2.0], [4.0, float("nan")]) <= demo.TOLERANCE
    assert not demo.largest_relative_difference([4.0, 2.0], [float("nan"), 2.0]) <= demo.TOLERANCE


@pytest.mark.parametrize(("expected", "actual"), [([], []), ([1.0], [1.0, 1.0])])
def test_runs_of_different_length_are_refused(demo: ModuleType, expected: list[float], actual: list[float]) -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        demo.largest_relative_difference(expected, actual)


def test_losses_are_read_step_by_step(demo: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps({"step": step, "loss": 4.0 - step}) + "\n" for step in range(3)))
    assert demo.losses(log) == [4.0, 3.0, 2.0]


def test_wide_terminals_get_the_curves_side_by_side(demo: ModuleType) -> None:
    lines = demo.curves(RUNS, width=100, unicode=True).splitlines()
    assert "original" in lines[0]
    assert "simulated NPU" in lines[0]
    assert max(map(len, lines)) <= 100


def test_narrow_terminals_get_them_one_above_the_other(demo: ModuleType) -> None:
    lines = demo.curves(RUNS, width=60, unicode=True).splitlines()
    assert "simulated NPU" not in lines[0]
    assert any("simulated NPU" in line for line in lines)
    assert max(map(len, lines)) <= 60


def test_a_pipe_without_unicode_gets_plain_ascii(demo: ModuleType) -> None:
    assert demo.curves(RUNS, width=60, unicode=False).isascii()


@pytest.mark.sim
def test_the_demonstration_ends_well(tmp_path: Path) -> None:
    argv = [sys.executable, str(DEMO), "--steps", "4", "--out", str(tmp_path / "demo")]
    run = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "Largest relative difference over 4 steps" in run.stdout
    assert "\x1b[" not in run.stdout, "colour in a pipe"
