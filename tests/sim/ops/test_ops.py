"""References against independent formulas in double precision, on the simulated NPU (one process for all cases)."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from npuport import sim

HERE = Path(__file__).parent
MODULES = sorted(path.stem for path in HERE.glob("cases_*.py"))
CASES = [
    f"{module}:{node.name}"
    for module in MODULES
    for node in ast.parse((HERE / f"{module}.py").read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")
]

pytestmark = pytest.mark.sim


@pytest.fixture(scope="module")
def outcome() -> dict[str, str | None]:
    try:
        simulated = sim.environment()
    except sim.SimulationUnavailable as reason:
        pytest.skip(str(reason))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **simulated}
    done = subprocess.run(
        [sys.executable, "run_cases.py", *MODULES],
        cwd=HERE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("OUTCOME ")]
    assert lines, f"exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return json.loads(lines[-1].removeprefix("OUTCOME "))


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, outcome: dict[str, str | None]) -> None:
    error = outcome[case]
    assert error is None, error
