"""`npuport apex build-plan` as its users run it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from running import Npuport

from environment.machines import trained_on


@pytest.fixture(autouse=True)
def seated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = trained_on().machine(tmp_path / "root")
    monkeypatch.setattr("npuport.environment.machine.this_machine", lambda time_limit: machine)  # noqa: ARG005


def test_the_script_comes_with_its_notes(npuport: Npuport, tmp_path: Path) -> None:
    shown = npuport("apex", "build-plan")
    assert shown.code == 0
    assert shown.out.startswith("#!/usr/bin/env bash\n")
    assert "new code needs no Apex" in shown.err
    written = npuport("apex", "build-plan", "-o", tmp_path / "build.sh")
    assert (written.code, written.out) == (0, "")
    assert (tmp_path / "build.sh").read_text(encoding="utf-8") == shown.out
    assert os.access(tmp_path / "build.sh", os.X_OK)


def test_a_wheel_that_is_none(npuport: Npuport, tmp_path: Path) -> None:
    result = npuport("apex", "build-plan", "--check", tmp_path / "apex-0.1+ascend-cp310-cp310-linux_aarch64.whl")
    assert result.code == 2
    assert "cannot be read as a wheel" in result.err
