"""What is missing is said in one sentence with the next step, and torch is not imported to find out."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from npuport.sim import SimOptions, SimulationUnavailable, requirements


def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **versions: str) -> None:
    def version(name: str) -> str:
        if name.replace("-", "_") not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name.replace("-", "_")]

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(requirements, "_directory", lambda package: tmp_path / package)
    monkeypatch.setattr(requirements.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(sys, "platform", "linux")


def test_all_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, torch="2.13.0+cpu", torch_npu="2.13.0.post1")
    found = requirements.check()
    assert (found.torch, found.torch_npu) == ("2.13.0+cpu", "2.13.0.post1")
    assert found.torch_npu_directory == tmp_path / "torch_npu"


def test_no_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path)
    with pytest.raises(SimulationUnavailable, match="torch is not installed"):
        requirements.check()


def test_no_torch_npu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, torch="2.13.0+cpu")
    with pytest.raises(SimulationUnavailable) as caught:
        requirements.check()
    assert str(caught.value) == (
        "torch_npu is not installed for torch 2.13.0 (it must match exactly).\n"
        "  pip install torch-npu==2.13.0   then run the same command again"
    )


def test_versions_that_do_not_match(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, torch="2.12.1", torch_npu="2.13.0")
    with pytest.raises(SimulationUnavailable, match="does not fit torch") as caught:
        requirements.check()
    assert "torch-npu==2.12.1" in caught.value.next_step


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, torch="2.13.0", torch_npu="2.13.0")
    monkeypatch.setattr(requirements.shutil, "which", lambda name: None if "+" in name else f"/usr/bin/{name}")
    with pytest.raises(SimulationUnavailable, match=r"no C\+\+ compiler"):
        requirements.check()


def test_not_linux(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, torch="2.13.0", torch_npu="2.13.0")
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SimulationUnavailable, match="Linux"):
        requirements.check()


def test_asking_imports_no_torch() -> None:
    code = (
        "import contextlib, sys\nfrom npuport.sim import SimulationUnavailable, requirements\n"
        "with contextlib.suppress(SimulationUnavailable): requirements.check()\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="Ascend910B3"):
        SimOptions(chip="H100")
    with pytest.raises(ValueError, match="between 1 and 64"):
        SimOptions(devices=0)


def test_chips_have_their_memory() -> None:
    assert (SimOptions().chip, SimOptions().memory_gib, SimOptions().cube_cores) == ("Ascend910B3", 64, 20)
    assert SimOptions(chip="910B4").memory_gib == 32
    assert SimOptions(chip="910B4", memory_gib=8).memory_gib == 8
    with pytest.raises(ValueError, match="memory_gib"):
        SimOptions(chip="Ascend910ProA")
