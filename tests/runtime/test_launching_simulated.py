"""`npuport run` on the simulated NPU: whatever starts a process, it sees the migration."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport.sim import SimOptions

PROGRAM = Path(__file__).parent / "programs" / "starting.py"
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29641")


@pytest.mark.parametrize("way", ["torchrun", "spawn", "loader", "actor"])
def test_every_process_sees_the_migration(
    simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, way: str
) -> None:
    if way == "actor" and importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    launcher = TORCHRUN if way == "torchrun" else ()
    command = ["-m", "npuport", "run", "--", sys.executable, *launcher, PROGRAM, way, tmp_path]
    done = simulated(command, SimOptions(devices=2), RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")
    assert done.returncode == 0, done.stderr[-3000:]
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == [
        f"npu:0 npu npu:{index} True" for index in range(2 if way == "torchrun" else 1)
    ]
    assert "npuport: " not in done.stderr
