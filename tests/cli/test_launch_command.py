"""`npuport launch` as its users run it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from running import Npuport

LAUNCHERS = Path(__file__).parents[1] / "environment" / "launchers"


@pytest.mark.parametrize("name", sorted(path.name for path in LAUNCHERS.iterdir() if path.is_file()))
def test_a_launcher_becomes_what_is_expected(npuport: Npuport, name: str) -> None:
    result = npuport("launch", LAUNCHERS / name)
    assert (result.code, result.out) == (0, (LAUNCHERS / "expected" / name).read_text(encoding="utf-8"))


def test_a_written_launcher_may_be_executed_as_the_old_one(npuport: Npuport, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/bash\nhorovodrun -np 2 python a.py\n", encoding="utf-8")
    script.chmod(0o755)
    result = npuport("launch", script, "-o", tmp_path / "npu.sh")
    assert (result.code, result.out) == (0, "")
    assert f"{script}:2: Horovod has no backend for NPUs" in result.err
    assert os.access(tmp_path / "npu.sh", os.X_OK)


def test_check_says_what_is_wrong_and_changes_nothing(npuport: Npuport, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("torchrun --nproc-per-node=gpu train.py\n", encoding="utf-8")
    result = npuport("launch", "--check", script)
    assert result.code == 1
    assert f"{script}:1: start it so: torchrun --nproc-per-node=npu train.py" in result.err
    assert script.read_text(encoding="utf-8") == "torchrun --nproc-per-node=gpu train.py\n"


def test_scripts_of_a_described_job_are_written_once(npuport: Npuport, tmp_path: Path) -> None:
    out = tmp_path / "launch"
    words = (
        "launch",
        "--nodes",
        2,
        "--devices",
        8,
        "--master-addr",
        "10.0.0.1",
        "-o",
        out,
        "--",
        "train.py",
        "--lr",
        "1",
    )
    assert npuport(*words).code == 0
    assert sorted(path.name for path in out.iterdir()) == ["env.sh", "node-0.sh", "node-1.sh"]
    assert os.access(out / "node-0.sh", os.X_OK)
    again = npuport(*words)
    assert again.code == 2
    assert "exists; npuport does not replace it" in again.err


def test_a_rank_table(npuport: Npuport, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(f"address_0=10.0.0.{ord(name)}\n", encoding="utf-8")
    result = npuport("launch", "--rank-table", f"n0={tmp_path / 'a'}", "--rank-table", f"n1={tmp_path / 'b'}")
    assert [server["server_id"] for server in json.loads(result.out)["server_list"]] == ["n0", "n1"]


@pytest.mark.parametrize(
    "words",
    [
        ("launch",),
        ("launch", "no-such.sh"),
        ("launch", "--devices", "2"),
        ("launch", "--rank-table", "x"),
        ("launch", "--rank-table", "x=/no/such"),
        ("launch", "a.sh", "b.sh"),
    ],
)
def test_misuse_is_one_line(npuport: Npuport, words: tuple[str, ...]) -> None:
    result = npuport(*words)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1


def test_a_python_file_is_no_launcher(npuport: Npuport, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n", encoding="utf-8")
    assert "is no shell script" in npuport("launch", script).err
