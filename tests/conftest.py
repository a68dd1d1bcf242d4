"""Programs run on the simulated NPU in processes of their own: torch can be put on it only before it is imported."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from npuport.sim import SimOptions, SimulationUnavailable, environment

# Ctrl-C is tested, and a shell that starts the tests in the background has it ignored in every process under it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
