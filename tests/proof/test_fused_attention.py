"""Converted code is run: calls of libraries on the simulated NPU, attention in steps on the CPU."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport.conversion.rounds import convert_files
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile

PROGRAM = Path(__file__).parent / "programs" / "fused_attention.py"
MODEL = """import torch
from flash_attn import flash_attn_func, flash_attn_varlen_func
from xformers.ops import memory_efficient_attention
from xformers.ops.fmha import BlockDiagonalMask


def varlen(q, k, v, starts, others, causal):
    return flash_attn_varlen_func(q, k, v, starts, others, 8, 11, 0.0, causal=causal)


def window(q, k, v):
    return flash_attn_func(q, k, v, causal=True, window_size=(3, 0))


def causal(q, k, v):
    return flash_attn_func(q, k, v, dropout_p=0.0, causal=True)


def bias(q, k, v, b):
    q = q.view(2, 12, 4, 16)
    b = b.to(q.dtype)
    return memory_efficient_attention(q, k, v, attn_bias=b)


def blocks(q, k, v):
    q = q.view(1, -1, 4, 16)
    return memory_efficient_attention(q, k, v, BlockDiagonalMask.from_seqlens([3, 1, 8, 5], [4, 1, 11, 5]))
"""
CASES = ("varlen", "varlen, causal", "window", "fewer heads of keys", "bias", "blocks")


@pytest.fixture(scope="module")
def differences(
    simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, float]:
    done = convert_files([SourceFile("model.py", FileKind.PYTHON, MODEL)], Settings(), unsafe=True, jobs=1)
    text = done.files[0].text
    assert "flash_attn" not in text and "xformers" not in text
    folder = tmp_path_factory.mktemp("converted")
    (folder / "model.py").write_text(text, encoding="utf-8")
    run = simulated([PROGRAM, folder])
    assert run.returncode == 0, run.stderr[-2000:]
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("DIFFERENCES "))
    found: dict[str, float] = json.loads(line.removeprefix("DIFFERENCES "))
    return found


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_agree_in_float32(case: str, differences: dict[str, float]) -> None:
    assert differences.keys() == set(CASES)
    assert differences[case] < 5e-6


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_whole_files_compute_the_same_on_the_cpu_once_converted_for_every_device() -> None:
    program = PROGRAM.with_name("converted_fragments.py")
    variables = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(program)]
    run = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    found = json.loads(run.stdout.partition("DIFFERENCES ")[2])
    assert len(found) >= 13
    assert {name: error for name, error in found.items() if error >= 5e-6} == {}
