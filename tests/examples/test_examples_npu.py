"""The promise: every example, converted, trains on the simulated NPU with the losses of the CPU run.

Three conversions of each: explicit torch.npu code (target npu), code for every device (target agnostic), and the CUDA
script with one import (target import).
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_examples_cpu import EXAMPLES, SHORT_RUNS

pytestmark = [
    pytest.mark.sim,
    pytest.mark.skipif(importlib.util.find_spec("torch_npu") is None, reason="torch_npu is not installed"),
]
TOLERANCE = 1e-5
TIMEOUT_S = 240


def npuport(*arguments: str, folder: Path | None = None) -> str:
    command = [sys.executable, "-m", "npuport", *arguments]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def train_on_cpu(folder: Path, arguments: list[str], log: Path) -> list[float]:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "train.py", *arguments, "--log", str(log)]
    subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=TIMEOUT_S, check=True)
    return losses(log)


def losses(log: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in log.read_text().splitlines()]


def largest_difference(left: list[float], right: list[float]) -> float:
    assert len(left) == len(right) > 0
    return max(abs(a - b) / max(abs(a), abs(b)) for a, b in zip(left, right, strict=True))


@pytest.fixture(scope="module", params=sorted(SHORT_RUNS))
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[float]]:
    """An example's name and the losses of its run on the CPU."""
    log = tmp_path_factory.mktemp("cpu") / "log.jsonl"
    return request.param, train_on_cpu(EXAMPLES / request.param, SHORT_RUNS[request.param], log)


@pytest.mark.parametrize("target", ["npu", "agnostic", "import"])
def test_converted_example_trains_as_on_the_cpu(example: tuple[str, list[float]], target: str, tmp_path: Path) -> None:
    name, expected = example
    port, log = tmp_path / name, tmp_path / "log.jsonl"
    npuport("convert", str(EXAMPLES / name), "-o", str(port), "--target", target)
    script = (port / "train.py").read_text()
    assert ("npuport.auto" in script) is (target == "import")
    said = npuport("run", "--sim", "--", sys.executable, "train.py", *SHORT_RUNS[name], "--log", str(log), folder=port)
    assert "npu" in said, "the script did not say that it runs on the NPU"
    assert largest_difference(losses(log), expected) <= TOLERANCE
    if target == "agnostic":
        assert largest_difference(train_on_cpu(port, SHORT_RUNS[name], tmp_path / "cpu.jsonl"), expected) <= TOLERANCE
