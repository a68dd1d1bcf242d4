"""Programs run on the simulated NPU in processes of their own: torch can be put on it only before it is imported."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from npuport.sim import SimOptions, SimulationUnavailable, environment

PROGRAMS = Path(__file__).parent / "programs"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "simulated" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.sim)


@pytest.fixture(scope="session")
def simulated() -> Callable[..., subprocess.CompletedProcess[str]]:
    """``simulated([script, *arguments], options=…)``: run Python with these arguments on the simulated NPU."""

    def run(
        arguments: Sequence[str | Path], options: SimOptions | None = None, timeout: float = 120, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        env = {**os.environ, **_environment(options or SimOptions()), "OMP_NUM_THREADS": "1", **variables}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, check=False)

    return run


@functools.cache
def _environment(options: SimOptions) -> dict[str, str]:
    try:
        return environment(options)
    except SimulationUnavailable as missing:
        pytest.skip(str(missing))


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
