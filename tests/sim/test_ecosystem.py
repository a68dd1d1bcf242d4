"""Hugging Face libraries, as installed, on the simulated NPU: what they compute on the CPU, they compute there."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from npuport.sim import SimOptions

NEEDED = ("accelerate", "datasets", "peft", "transformers", "trl")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

PROGRAMS = Path(__file__).parent / "programs"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
ACCELERATE_LAUNCH = ("-m", "accelerate.commands.launch", "--num_processes=2", "--mixed_precision=no")
MODELS = ("gpt2", "llama", "bert", "vit", "lora", "sft")
SHARDED_MODELS = ("llama", "vit")  # no dropout: two processes draw other masks than one
# name: launcher, program, its arguments behind the folder to write to
RUNS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "fine-tuning, cpu": ((), "fine_tuning.py", (*MODELS, "--use_cpu")),
    "fine-tuning, npu": ((), "fine_tuning.py", MODELS),
    "fine-tuning, 2 npus": (ACCELERATE_LAUNCH, "fine_tuning.py", SHARDED_MODELS),
    "loop, cpu": ((), "accelerate_loop.py", ("--cpu",)),
    "loop, 2 npus": (TORCHRUN, "accelerate_loop.py", ()),
}
TOLERANCE = 2e-5

Results = dict[str, dict[str, Any]]
Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def runs(simulated: Start, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[Results]]:
    """What each program said after RESULTS. Two run at a time; they can download nothing."""
    with ThreadPoolExecutor(2) as pool:
        return {
            name: pool.submit(run, simulated, tmp_path_factory.mktemp("run"), *parts) for name, parts in RUNS.items()
        }


def run(simulated: Start, folder: Path, launcher: Sequence[str], program: str, arguments: Sequence[str]) -> Results:
    options = SimOptions(devices=2 if launcher else 1)
    done = simulated(
        [*launcher, PROGRAMS / program, folder, *arguments], options, 300, HF_HUB_OFFLINE="1", HF_HOME=str(folder)
    )
    said = [line.partition("RESULTS ")[2] for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
    assert len(said) == 1, f"{program} ended with {done.returncode}:\n{done.stderr[-4000:]}"
    assert done.returncode == 0
    results: Results = json.loads(said[0])
    return results


def agree(npu: dict[str, Any], cpu: dict[str, Any], processes: int = 1) -> None:
    assert (npu["device"], npu["processes"]) == ("npu", processes)
    assert (cpu["device"], cpu["processes"]) == ("cpu", 1)
    assert npu["numbers"] == pytest.approx(cpu["numbers"], rel=TOLERANCE)
    assert len(set(cpu["numbers"])) > 5


@pytest.mark.sim
@pytest.mark.parametrize("model", MODELS)
def test_fine_tuning(runs: dict[str, Future[Results]], model: str) -> None:
    npu, cpu = (runs[f"fine-tuning, {device}"].result()[model] for device in ("npu", "cpu"))
    agree(npu, cpu)
    assert npu["resumed"] == pytest.approx(cpu["resumed"], rel=TOLERANCE)


@pytest.mark.sim
@pytest.mark.parametrize("model", SHARDED_MODELS)
def test_fine_tuning_in_two_processes(runs: dict[str, Future[Results]], model: str) -> None:
    agree(runs["fine-tuning, 2 npus"].result()[model], runs["fine-tuning, cpu"].result()[model], processes=2)


@pytest.mark.sim
def test_loop_with_accelerate(runs: dict[str, Future[Results]]) -> None:
    agree(runs["loop, 2 npus"].result()["loop"], runs["loop, cpu"].result()["loop"], processes=2)


@pytest.mark.sim
def test_trainer_in_float16_needs_an_optimizer_that_is_not_fused(simulated: Start, tmp_path: Path) -> None:
    """What NP718 says: torch_npu's gradient scaler hands itself to the fused optimizer, which is Trainer's default."""
    names = ("default", "adamw_torch_fused", "adamw_torch")
    done = simulated([PROGRAMS / "trainer_in_float16.py", tmp_path, *names], HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines() if line.startswith(names))
    assert said["adamw_torch"] == "trained", done.stderr[-2000:]
    assert "unexpected keyword argument 'grad_scaler'" in said["adamw_torch_fused"]
    assert said["default"] == said["adamw_torch_fused"]
