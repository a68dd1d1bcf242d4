"""What a machine must have before the simulated NPU can run; asked without importing torch."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from npuport.sim.errors import SimulationUnavailable


@dataclass(frozen=True, slots=True)
class Installation:
    """Where torch and torch_npu lie, and which versions they are."""

    torch: str
    torch_npu: str
    torch_directory: Path
    torch_npu_directory: Path
    c_compiler: str  # path
    cxx_compiler: str  # path


def check() -> Installation:
    """Return what was found.

    Raises:
        SimulationUnavailable: something is missing; its text names it and the next step.
    """
    if sys.platform != "linux":
        raise SimulationUnavailable(
            "torch_npu is built for Linux only, so the simulated NPU needs Linux.",
            "run npuport on Linux, in WSL 2, or in a container",
        )
    torch = _version("torch")
    if torch is None:
        raise SimulationUnavailable(
            "torch is not installed.",
            "pip install torch==X torch-npu==X   with one X for both, then run the same command again",
        )
    plain = Version(torch).base_version
    torch_npu = _version("torch-npu")
    if torch_npu is None:
        raise SimulationUnavailable(
            f"torch_npu is not installed for torch {plain} (it must match exactly).",
            f"pip install torch-npu=={plain}   then run the same command again",
        )
    if Version(torch_npu).base_version != plain:
        raise SimulationUnavailable(
            f"torch_npu {torch_npu} does not fit torch {torch} (they must match exactly).",
            f"pip install torch-npu=={plain}   then run the same command again",
        )
    return Installation(torch, torch_npu, _directory("torch"), _directory("torch_npu"), *_compilers())


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _directory(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SimulationUnavailable(
            f"{package} is installed but cannot be found.", f"pip install --force-reinstall {package.replace('_', '-')}"
        )
    return Path(spec.submodule_search_locations[0])


def _compilers() -> tuple[str, str]:
    c = _first_program(os.environ.get("CC"), "gcc", "cc", "clang")
    cxx = _first_program(os.environ.get("CXX"), "g++", "c++", "clang++")
    if c is None or cxx is None:
        raise SimulationUnavailable(
            f"the simulated NPU is compiled on first use, and no {'C' if c is None else 'C++'} compiler was found.",
            "apt-get install g++   (or conda install gxx), or set CC and CXX; then run the same command again",
        )
    return c, cxx


def _first_program(*names: str | None) -> str | None:
    return next((path for name in names if name and (path := shutil.which(name))), None)
