"""The stand-in for CANN is generated for whatever torch_npu is installed: tried on wheels of other releases."""

from __future__ import annotations

import ctypes
import dataclasses
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from npuport.sim import SimulationUnavailable, cann, requirements

pytestmark = pytest.mark.sim

OLDEST, BETWEEN, NEWEST = "2.6.0", "2.9.0", "2.14.0"


@pytest.fixture(scope="module", params=[OLDEST, BETWEEN, NEWEST])
def other(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> requirements.Installation:
    """The installation of this machine with another release of torch_npu in it, downloaded and not installed."""
    try:
        installation = requirements.check()
    except SimulationUnavailable as missing:
        pytest.skip(str(missing))
    directory = tmp_path_factory.mktemp(f"torch_npu-{request.param}")
    wanted = [f"torch-npu=={request.param}", "--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"]
    options = ["--no-deps", "--only-binary", ":all:", "--platform", "manylinux2014_x86_64", "--dest", str(directory)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *wanted, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(directory.glob("*.whl"))
    if not wheels:
        pytest.skip(f"torch-npu {request.param} could not be downloaded: {done.stderr.strip()[-300:]}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(directory, [name for name in wheel.namelist() if name.endswith(".so")])
    return dataclasses.replace(installation, torch_npu=request.param, torch_npu_directory=directory / "torch_npu")


@pytest.fixture(scope="module")
def built(other: requirements.Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stand-in")
    cann._build(other, directory)
    return directory


def test_every_undefined_symbol_is_provided(other: requirements.Installation, built: Path) -> None:
    provided = {name for library in built.glob("*.so") for name in cann._defined(library)}
    of_torch = {name for library in other.torch_directory.glob("lib/libtorch*.so") for name in cann._defined(library)}
    process, runtime = ctypes.CDLL(None), ctypes.CDLL("libstdc++.so.6")  # this Python with libc, and C++'s own
    undefined = cann.undefined_symbols(other.torch_npu_directory)
    missing = {
        name
        for name in undefined - provided - of_torch
        if not name.startswith(("Py", "_Py")) and not hasattr(process, name) and not hasattr(runtime, name)
    }
    assert not missing
    assert {"aclInit", "aclrtMalloc", "aclopCompileAndExecute"} <= undefined & provided


def test_every_library_that_is_needed_is_there(other: requirements.Installation, built: Path) -> None:
    for name in cann.library_names(other):
        ctypes.CDLL(str(built / name), mode=ctypes.RTLD_LOCAL)


def test_every_operator_looked_up_is_there(other: requirements.Installation, built: Path) -> None:
    names = cann.operator_names(other.torch_npu_directory)
    assert len(names) > 600
    library = ctypes.CDLL(str(built / "libopapi.so"))
    assert not [name for name in names if not hasattr(library, name)]
