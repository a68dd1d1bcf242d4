"""Stand-ins for CUDA libraries, in a process of their own on the simulated NPU."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "stand_ins.py"


def test_stand_ins_equal_plain_attention(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = simulated([PROGRAM])
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("passed") == 7


def test_stand_ins_are_chosen_by_name(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    program = "from npuport.runtime.activation import activate; activate(); import flash_attn"
    done = simulated(["-c", program], NPUPORT_STAND_INS="xformers,pynvml")
    assert "No module named 'flash_attn'" in done.stderr
