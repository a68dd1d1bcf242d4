"""The door to the real machine: commands that hang, fail or are missing, another Python, files that cannot be read."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from environment.machines import npu_smi_info, trained_on
from npuport.environment.checks.registry import diagnose
from npuport.environment.machine import Machine, run_command, this_machine, this_process
from npuport.environment.probe import probe
from npuport.environment.probes.ascend import npu_processes, npu_rows
from npuport.errors import UserError


def stubs(folder: Path, commands: Mapping[str, str]) -> str:
    """A folder for PATH with programs that are lines of shell."""
    folder.mkdir()
    for name, text in commands.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_a_command_that_hangs_is_given_up_with_its_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", stubs(tmp_path / "bin", {"npu-smi": "trap '' TERM; sleep 30 & wait"}))
    begin = time.monotonic()
    answer = run_command(("npu-smi", "info"), 0.3)
    assert answer.timed_out and answer.code is None
    assert time.monotonic() - begin < 5


def test_a_command_that_fails_or_is_missing_is_an_answer(tmp_path: Path) -> None:
    assert run_command(("sh", "-c", "echo no >&2; exit 3"), 5).code == 3
    assert run_command((str(tmp_path / "none"),), 5).code is None


def test_stub_commands_and_files_together_are_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "table").write_text(npu_smi_info(health="Warning"))
    path = stubs(tmp_path / "bin", {"npu-smi": f"cat {tmp_path}/table", "gcc": "echo gcc 12.3.0", "cmake": "exit 1"})
    monkeypatch.setenv("PATH", path)
    fake = trained_on().machine(tmp_path / "root")
    machine = Machine(fake.root, fake.variables, lambda command: run_command(command, 5), fake.process)
    found = {one.code: str(one.seen) for one in diagnose(probe(machine))}
    assert found.keys() >= {"ND103", "ND601"}
    assert "health Warning" in found["ND103"] and "cmake" in found["ND601"] and "gcc" not in found["ND601"]


def test_another_python_is_asked(tmp_path: Path) -> None:
    machine = this_machine(1, Path(sys.executable))
    assert machine.process.python == this_process().python
    assert any(path.endswith("site-packages") for path in machine.process.search_path)
    with pytest.raises(UserError, match="does not run as a Python"):
        this_machine(1, tmp_path / "python")


def test_what_cannot_be_read_is_not_there(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {}, lambda _command: run_command(("false",), 1), this_process())
    (tmp_path / "folder").mkdir()
    assert machine.text("/folder") is None and machine.text("/none") is None
    assert machine.names("/none") == ()


def test_the_tables_of_npu_smi_in_both_layouts() -> None:
    inference = """
+--------------------------------------------------------------------------------------------------------+
| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
+===============================+=================+======================================================+
| 6       310P3                 | OK              | NA           50                0     / 0             |
| 0       0                     | 0000:84:00.0    | 0            1839 / 21525                            |
+===============================+=================+======================================================+
| NPU     Chip                  | Process id      | Process name             | Process memory(MB)        |
| 6       0                     | 12345           | python                   | 1800                      |
"""
    (one,) = npu_rows(inference)
    assert (one.number, one.chip, one.health, one.memory_used, one.memory) == (6, "310P3", "OK", 1839, 21525)
    assert [(one.npu, one.pid, one.name, one.memory) for one in npu_processes(inference)] == [
        (6, 12345, "python", 1800)
    ]
    eight = npu_rows(npu_smi_info())
    assert [one.number for one in eight] == list(range(8)) and {one.memory for one in eight} == {65536}
