"""Whole trainings on the CPU and on the simulated NPU: nothing is suspected where nothing is wrong, later steps too."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from npuport.precision.operators.calls import read_step, step_file
from npuport.precision.operators.suspects import Comparison, compare
from npuport.precision.operators.verdict import verdict_of

CLEAN = (
    "gpt", "cnn", "cnn_sgd", "lstm", "unet", "recurrent", "encoder", "vit", "translator", "llama_sdpa", "t5", "bert",
    "gru", "gpt_bfloat16", "gpt_float16", "lstm_bfloat16", "bert_bfloat16",
)  # fmt: skip
FAULTY = {
    "gpt=wrong_eps": "blocks.0.norm2",
    "cnn_sgd=missing_bias": "layers.0",
    "llama_sdpa=scaled_attention": "model.model.layers.1.self_attn",
}
# The operator and the number of the call that gives 10 % too much: beside, behind and inside of stretches of other
# operators, which are judged together with it.
SCALED = (
    "gru=addmm.3", "gru=mm.3", "gru=matmul.3", "recurrent=addmm.5", "recurrent=addmm.9", "recurrent=addmm.20",
    "recurrent=tanh.5", "recurrent=mm.5", "recurrent=mm.20", "recurrent=tanh_backward.5", "lstm=matmul.3",
)  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("torch_npu", "transformers"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    folder = tmp_path_factory.mktemp("trainings")
    inside = {name: value for name, value in os.environ.items() if name != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    for device, names in (("cpu", CLEAN), ("npu", (*CLEAN, *FAULTY, *SCALED, "lstm=scaled_gradient"))):
        script = [str(Path(__file__).with_name("clean_trainings.py")), device, str(folder / device), *names]
        command = [sys.executable, "-m", "npuport", "run", "--sim", "--", sys.executable, *script]
        done = subprocess.run(command, env=inside, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
    return folder


def compared(folder: Path, name: str, step: int) -> Comparison:
    reference, _, _ = name.partition("=")
    return compare(
        read_step(step_file(folder / "cpu" / reference, step, 0)), read_step(step_file(folder / "npu" / name, step, 0))
    )


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_training_is_quiet(recorded: Path, name: str) -> None:
    suspects = [(step, str(one.text)) for step in (0, 1) for one in compared(recorded, name, step).suspects]
    assert suspects == []


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_in_a_training_is_named_first(recorded: Path, name: str) -> None:
    verdict = verdict_of(compared(recorded, name, 1))
    assert verdict is not None and verdict.confidence == "high"
    assert verdict.suspect.call.module.startswith(FAULTY[name]), str(verdict.suspect.text)


def test_a_wrong_part_of_a_gradient_is_named(recorded: Path) -> None:
    first = compared(recorded, "lstm=scaled_gradient", 1).suspects[0]
    assert (first.call.module, first.call.phase) == ("cell", "backward")


@pytest.mark.parametrize("name", SCALED)
def test_a_wrong_call_comes_before_the_stretches_it_spoils(recorded: Path, name: str) -> None:
    operator, _, which = name.partition("=")[2].partition(".")
    calls = read_step(step_file(recorded / "npu" / name, 0, 0)).calls
    wrong = [call for call in calls if call.operator.split(".")[1] == operator][int(which)]
    verdict = verdict_of(compared(recorded, name, 0))
    assert verdict is not None and verdict.confidence == "high"
    assert verdict.suspect.call == wrong, str(verdict.suspect.text)
