"""The checks of programs on the simulated NPU."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport.sim import SimOptions

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def outcomes(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., dict[str, str | None]]:
    """``outcomes(program, …)``: what every check of a program said (None: passed), from one run of it."""

    @functools.cache
    def run(program: str, devices: int = 1, processes: int = 1) -> dict[str, str | None]:
        launcher = (
            [] if processes == 1 else ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        )
        done = simulated([*launcher, PROGRAMS / program], SimOptions(devices=devices))
        reports = [json.loads(line.partition("CHECKS ")[2]) for line in done.stdout.splitlines() if "CHECKS " in line]
        assert len(reports) == processes, (
            f"{program} did not finish (exit code {done.returncode}):\n{done.stderr[-3000:]}"
        )
        merged: dict[str, str | None] = {}
        for report in reports:
            for name, error in report.items():
                merged[name] = merged.get(name) or error
        return merged

    return run
