"""Hugging Face libraries, as installed, on the simulated NPU: what they compute on the CPU, they compute there."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Callable, Sequence
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
TOLERANCE = 2e-5

Results = dict[str, dict[str, Any]]
Run = Callable[..., Results]


@pytest.fixture(scope="module")
def results(simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: Any) -> Run:
    """``results(program, *arguments, launcher=…)``: what a program says after RESULTS; it can download nothing."""

    def run(program: str, *arguments: str, launcher: Sequence[str] = ()) -> Results:
        folder = str(tmp_path_factory.mktemp("run"))
        done = simulated(
            [*launcher, PROGRAMS / program, folder, *arguments],
            SimOptions(devices=2 if launcher else 1),
            HF_HUB_OFFLINE="1",
            HF_HOME=folder,
        )
        said = [line.partition("RESULTS ")[2] for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
        assert done.returncode == 0 and len(said) == 1, (
            f"{program} ended with {done.returncode}:\n{done.stderr[-4000:]}"
        )
        found: Results = json.loads(said[0])
        return found

    return run


MODELS = ("gpt2", "llama", "bert", "vit", "lora", "sft")
SHARDED_MODELS = ("llama", "vit")  # no dropout: two processes draw other masks than one


@pytest.fixture(scope="module")
def on_cpu(results: Run) -> Results:
    return results("fine_tuning.py", *MODELS, "--use_cpu")


@pytest.fixture(scope="module")
def on_npu(results: Run) -> Results:
    return results("fine_tuning.py", *MODELS)


@pytest.fixture(scope="module")
def on_two_npus(results: Run) -> Results:
    return results("fine_tuning.py", *SHARDED_MODELS, launcher=ACCELERATE_LAUNCH)


def agree(npu: dict[str, Any], cpu: dict[str, Any], processes: int = 1) -> None:
    assert (npu["device"], npu["processes"]) == ("npu", processes)
    assert (cpu["device"], cpu["processes"]) == ("cpu", 1)
    assert npu["numbers"] == pytest.approx(cpu["numbers"], rel=TOLERANCE)
    assert len(set(cpu["numbers"])) > 5


@pytest.mark.sim
@pytest.mark.parametrize("model", MODELS)
def test_fine_tuning(on_cpu: Results, on_npu: Results, model: str) -> None:
    agree(on_npu[model], on_cpu[model])
    assert on_npu[model]["resumed"] == pytest.approx(on_cpu[model]["resumed"], rel=TOLERANCE)


@pytest.mark.sim
@pytest.mark.parametrize("model", SHARDED_MODELS)
def test_fine_tuning_in_two_processes(on_cpu: Results, on_two_npus: Results, model: str) -> None:
    agree(on_two_npus[model], on_cpu[model], processes=2)


@pytest.mark.sim
def test_loop_with_accelerate(results: Run) -> None:
    cpu = results("accelerate_loop.py", "--cpu")["loop"]
    agree(results("accelerate_loop.py", launcher=TORCHRUN)["loop"], cpu, processes=2)
