"""``pytest --npu-sim`` of an installed npuport, in processes of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport.sim import SimulationUnavailable, environment

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import subprocess, sys
import pytest, torch

@pytest.mark.parametrize("device", ["npu:0", "npu:1"])
def test_here(device):
    assert torch.ones(3, device=device).sum().item() == 3

def test_in_a_child():
    subprocess.run([sys.executable, "-c", "import torch; assert torch.npu.device_count() == 2"], check=True)
"""
Pytest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", autouse=True)
def available() -> None:
    try:
        environment()
    except SimulationUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that has npuport as pip would install it, entry points included."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.fixture
def run_pytest(installed: Path, tmp_path: Path) -> Pytest:
    """``run_pytest(*options, before=…)``: pytest in a project."""
    (tmp_path / "test_project.py").write_text(TESTS)

    def run(*options: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("NPUPORT_", "PYTEST_"))}
        return subprocess.run(
            [sys.executable, *before, "-m", "pytest", "-W", "error::pytest.PytestAssertRewriteWarning", *options],
            cwd=tmp_path,
            env={**env, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    return run


def in_a_run(*options: str) -> tuple[str, ...]:
    """What stands before ``-m pytest`` for ``npuport run --sim options… -- python -m pytest``."""
    return ("-m", "npuport", "run", "--sim", *options, "--", sys.executable)


pytestmark = pytest.mark.sim


def test_a_project_whose_conftest_imports_torch(run_pytest: Pytest, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import torch\n")
    done = run_pytest("--npu-sim", "--npu-sim-devices", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nnpu-sim: simulated 2 x Ascend910B3 (64 GiB), results computed by CPU kernels" in done.stdout
    assert "3 passed in" in done.stdout


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_with_xdist(run_pytest: Pytest) -> None:
    done = run_pytest("--npu-sim", "--npu-sim-devices", "2", "-n", "2", "-k", "here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 workers" in done.stdout and "2 passed in" in done.stdout


@pytest.mark.parametrize(
    ("options", "before", "said"),
    [
        (["--npu-sim-devices", "2"], (), "add --npu-sim"),
        (["--npu-sim", "--npu-sim-devices", "0"], (), "between 1 and 64, not 0"),
        (["--npu-sim", "--npu-sim-chip", "H100"], (), "unknown chip 'H100'"),
        (["--npu-sim", "--npu-sim-chip", "910A"], in_a_run(), "cannot have 1 Ascend910A"),
        (["--npu-sim", "-p", "fake.torch"], (), "npuport run --sim -- pytest"),
    ],
)
def test_what_cannot_be(
    run_pytest: Pytest, tmp_path: Path, options: list[str], before: tuple[str, ...], said: str
) -> None:
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "torch.py").write_text("import sys\nsys.modules['torch'] = sys.modules[__name__]\n")
    done = run_pytest(*options, before=before)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr and "Traceback" not in done.stderr
