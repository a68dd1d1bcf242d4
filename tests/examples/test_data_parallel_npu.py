"""A DataParallel script, converted, trains with one process for each of two simulated NPUs as one process trains."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_examples_cpu import EXAMPLES
from test_examples_npu import npuport

pytestmark = [
    pytest.mark.sim,
    pytest.mark.skipif(importlib.util.find_spec("torch_npu") is None, reason="torch_npu is not installed"),
]
TOLERANCE = 1e-5  # the sums of two halves against the sum of the whole, in float32
OPTIONS = ["--arch", "resnet_tiny", "--epochs", "3", "--train-size", "128", "--val-size", "32", "-b", "32", "-j", "0"]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
COMPARE = """
import sys, torch
one, two = (torch.load(path, map_location="cpu")["state_dict"] for path in sys.argv[1:])
assert one.keys() == two.keys() and all(name.startswith("module.") for name in one), sorted(one)
print(max((one[name] - two[name]).abs().max().item() for name in one))
"""


def trained(port: Path, name: str, *launcher: str) -> tuple[list[dict[str, float]], Path, str]:
    """The epochs of a run on two simulated NPUs, its checkpoint, and what it said."""
    log, checkpoint = port / f"{name}.jsonl", port / name / "last.pt"
    checkpoint.parent.mkdir()
    files = ["--log-file", str(log), "--checkpoint", str(checkpoint)]
    run = ["run", "--sim", "--devices", "2", "--", sys.executable, *launcher, "train.py", *OPTIONS, *files]
    said = npuport(*run, folder=port)
    assert (checkpoint.parent / "model_best.pth.tar").exists()
    epochs = [json.loads(line) for line in log.read_text().splitlines()]
    return epochs, checkpoint, said


def largest_difference(one: Path, other: Path) -> float:
    """Between the weights of two checkpoints with the names that DataParallel gives them."""
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-c", COMPARE, str(one), str(other)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    port = tmp_path / "imagenet"
    npuport("convert", str(EXAMPLES / "imagenet"), "-o", str(port), "--unsafe-fixes")
    alone, weights_alone, _ = trained(port, "alone")
    together, weights_together, said = trained(port, "together", *TORCHRUN)

    assert said.count("epoch 0 [0/4]") == 2, "each process sees a quarter of the batches' samples, in as many batches"
    assert len(together) == 3, "one process alone writes the log"
    for one, two in zip(alone, together, strict=True):
        assert two == pytest.approx(one, rel=TOLERANCE)
    assert together[-1]["loss"] < 0.98 * together[0]["loss"]
    assert largest_difference(weights_alone, weights_together) <= TOLERANCE
