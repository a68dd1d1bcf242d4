"""Stand-ins for CUDA libraries, in a process of their own on the simulated NPU."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport.sim import SimOptions

PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = PROGRAMS / "stand_ins.py"


def test_stand_ins_equal_plain_attention(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = simulated([PROGRAM])
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("passed") == 7


def test_stand_ins_are_chosen_by_name(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    program = "from npuport.runtime.activation import activate; activate(); import flash_attn"
    done = simulated(["-c", program], NPUPORT_STAND_INS="xformers,pynvml")
    assert "No module named 'flash_attn'" in done.stderr


@pytest.mark.parametrize("chip", ["Ascend910B3", "Ascend910A"])
def test_apex_follows_its_documents(simulated: Callable[..., subprocess.CompletedProcess[str]], chip: str) -> None:
    done = simulated([PROGRAMS / "apex_stand_in.py", "npu"], SimOptions(chip=chip))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("passed") == 19


def test_apex_works_on_the_cpu() -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    variables = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAMS / "apex_stand_in.py"), "cpu"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("passed") == 19


def test_apex_parallel_layers_average(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29643")
    done = simulated([*launcher, PROGRAMS / "apex_parallel.py"], SimOptions(devices=2))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("passed") == 2


FLOAT16_EPS = 2**-10
SCALES = [65536, 32768, 16384] + [8192] * 9
"""The loss scale of twelve steps, of which the first three overflow."""


def test_apex_scripts_run_unmodified_and_converted(
    simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The scales are the same; losses differ by what float16 rounds (O2 has float16 weights, torch.amp has not)."""
    (tmp_path / "before").mkdir()
    for script in ("apex_o1.py", "apex_o2.py"):
        shutil.copy(PROGRAMS / script, tmp_path / "before")
    convert = ["-m", "npuport", "convert", "before", "-o", "after", "--unsafe-fixes", "--target", "npu"]
    done = subprocess.run([sys.executable, *convert], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)" in (
        tmp_path / "after" / "apex_o1.py"
    ).read_text(encoding="utf-8")
    for script, arguments in (("apex_o2.py", []), ("apex_o1.py", [tmp_path / "state.pt"])):
        found = []
        for folder in ("before", "after"):
            (tmp_path / "state.pt").unlink(missing_ok=True)
            command = ["-m", "npuport", "run", "--", sys.executable, tmp_path / folder / script, *arguments]
            done = simulated(command)
            assert done.returncode == 0, done.stderr[-3000:]
            losses, scales = trajectory(done.stdout)
            assert scales == SCALES
            assert sum(losses[9:]) < sum(losses[3:6])
            found.append(losses)
        assert found[1] == pytest.approx(found[0], rel=FLOAT16_EPS)
    command = ["-m", "npuport", "run", "--", sys.executable, tmp_path / "after" / "apex_o1.py", tmp_path / "state.pt"]
    _, scales = trajectory(simulated(command).stdout)
    assert scales == [8192] * 12  # from the checkpoint on


def test_apex_scripts_run_with_the_names_of_apex_for_ascend(
    simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "before").mkdir()
    for script in ("apex_o1.py", "apex_o2.py"):
        shutil.copy(PROGRAMS / script, tmp_path / "before")
    convert = ["-m", "npuport", "convert", "before", "-o", "after", "--unsafe-fixes", "--apex", "ascend", "--no-verify"]
    done = subprocess.run([sys.executable, *convert], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shutil.copytree(Path(__file__).parent / "apex_for_ascend" / "apex", tmp_path / "after" / "apex")
    for script, arguments in (("apex_o1.py", [tmp_path / "state.pt"]), ("apex_o2.py", [])):
        done = simulated([tmp_path / "after" / script, *arguments])
        assert done.returncode == 0, done.stderr[-3000:]
        assert "combine_grad=True" in (tmp_path / "after" / script).read_text(encoding="utf-8")
        assert trajectory(done.stdout)[1] == SCALES


def trajectory(output: str) -> tuple[list[float], list[int]]:
    """The losses and scales that a script printed."""
    found = re.findall(r"^step \d+ loss (\S+) scale (\d+)$", output, re.MULTILINE)
    return [float(loss) for loss, _ in found], [int(scale) for _, scale in found]
