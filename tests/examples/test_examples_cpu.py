"""The examples as they are: plain CUDA scripts that also run on a machine without a GPU."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHORT_RUNS = {
    "cnn": ["--max-steps", "24", "--train-size", "640", "--epochs", "3", "--workers", "2"],
    "devices": ["--max-steps", "60", "--size", "1024"],
    "gan": ["--max-steps", "16", "--dataset-size", "512", "--workers", "2"],
    "gpt": ["--steps", "14", "--warmup", "4", "--sample", "8", "--batch-size", "16"],
    "imagenet": ["--epochs", "4", "--train-size", "256", "--val-size", "64", "-b", "32", "--workers", "0"],
    "lstm_lm": ["--max-steps", "40", "--epochs", "1"],
}
TIMEOUT_S = 120

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def start(name: str, *arguments: str, launcher: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start an example on the CPU; one thread each, so that two can run side by side and sums keep their order."""
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, *launcher, "train.py", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=EXAMPLES / name, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == 0, output
    return output


def losses(log: Path) -> list[float]:
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [record["step"] for record in records] == list(range(records[0]["step"], records[-1]["step"] + 1))
    return [record["loss"] for record in records]


def assert_falls(values: list[float]) -> None:
    few = max(1, len(values) // 5)
    assert fmean(values[-few:]) < 0.9 * fmean(values[:few]), values


def test_every_example_has_a_short_run() -> None:
    assert {path.parent.name for path in EXAMPLES.glob("*/train.py")} == set(SHORT_RUNS)


@needs_torch
@pytest.mark.parametrize("name", sorted(SHORT_RUNS))
def test_loss_falls_and_two_runs_write_the_same_log(name: str, tmp_path: Path) -> None:
    logs = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    runs = [start(name, *SHORT_RUNS[name], "--log", str(log)) for log in logs]
    outputs = [finish(run) for run in runs]
    assert all("loss" in output.lower() for output in outputs)
    assert logs[0].read_bytes() == logs[1].read_bytes()
    assert_falls(losses(logs[0]))


@needs_torch
def test_gpt_resumes_exactly(tmp_path: Path) -> None:
    options = ["--steps", "6", "--batch-size", "4", "--n-embd", "32", "--sample", "0"]
    whole, rest = tmp_path / "whole.jsonl", tmp_path / "rest.jsonl"
    finish(start("gpt", *options, "--log", str(whole), "--save-every", "3", "--out-dir", str(tmp_path)))
    finish(start("gpt", *options, "--log", str(rest), "--resume", str(tmp_path / "ckpt-000003.pt")))
    assert rest.read_text().splitlines() == whole.read_text().splitlines()[3:]


@needs_torch
def test_cnn_runs_in_two_processes(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")
    finish(start("cnn", "--max-steps", "12", "--workers", "0", "--log-file", str(log), launcher=torchrun))
    assert len(losses(log)) == 12
    assert_falls(losses(log))


@needs_torch
def test_lstm_lm_old_options_train_the_same(tmp_path: Path) -> None:
    short = ["--model", "GRU", "--nhid", "32", "--max-steps", "4", "--epochs", "1"]
    plain, old = tmp_path / "plain.jsonl", tmp_path / "old.jsonl"
    old_options = ["--no-cuda", "--cuda-default-tensor", "--save", str(tmp_path / "best.pt")]
    runs = [start("lstm_lm", *short, "--log", str(plain)), start("lstm_lm", *short, *old_options, "--log", str(old))]
    for run in runs:
        finish(run)
    assert plain.read_bytes() == old.read_bytes()


def test_examples_know_nothing_of_the_port() -> None:
    kinds = {".md", ".py", ".sh", ".yaml"}
    texts = {path: path.read_text(encoding="utf-8") for path in EXAMPLES.rglob("*") if path.suffix in kinds}
    assert len(texts) > 20
    found = [path for path, text in texts.items() if re.search(r"\bnpu|_npu|ascend|\bhccl", text, re.IGNORECASE)]
    assert not found
