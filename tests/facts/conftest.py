"""Running Python where the real torch_npu imports: on the simulated CANN."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

OnCann = Callable[..., Any]


@pytest.fixture(scope="session")
def on_cann() -> OnCann:
    """A function that runs source text with arguments in a child process and returns what it prints last (JSON).

    Without ``kernels`` the CPU kernels of the simulated NPU stay out, so that torch_npu itself answers.
    """
    from npuport.sim import SimOptions, SimulationUnavailable, environment

    try:
        environment()
    except SimulationUnavailable as problem:
        pytest.skip(str(problem))

    def run(source: str, *arguments: str, chip: str = "Ascend910B3", kernels: bool = False, **variables: str) -> Any:
        simulated = environment(SimOptions(chip=chip))
        plain = {} if kernels else {"NPUPORT_SIM": "0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        settings = {**os.environ, **simulated, **plain, **variables}
        command = [sys.executable, "-W", "ignore", "-c", source, *arguments]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.strip().splitlines()[-1])

    return run
