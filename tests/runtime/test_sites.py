"""Each call site once: what it became, and whether that is the same, emulated, without effect or refused."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from npuport.runtime import migration, notes, sites

SCRIPT = """import torch
import flash_attn
x = torch.zeros(2, device="cuda")
print(torch.cuda.get_device_capability())
torch.backends.cudnn.enabled = True
torch.cuda.nccl.version()
torch.cuda.temperature()
y = x.to(place)
torch.backends.cuda.matmul.allow_tf32 = True
z = y.double()
choices = ["cpu", "cuda"]
"""


@pytest.mark.skipif(importlib.util.find_spec("torch_npu") is None, reason="conversion in memory acts with torch_npu")
def test_sites_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "notes").mkdir()
    program = (
        "from pathlib import Path; from npuport.runtime.importer import converted_code;"
        "converted_code(Path('train.py').absolute(), Path.cwd())"
    )
    env = {**os.environ, notes.VARIABLE: str(tmp_path / "notes"), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    for kept in (False, True):  # the second time, nothing is converted anew
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert [line.split()[2] for line in done.stderr.splitlines()] == ["NP203"]
        assert "train.py:7" in done.stderr
        found = migration.gather(tmp_path / "notes")
        assert [(site["line"], site["effect"], site["code"]) for site in found["sites"]] == [
            (2, "emulated", "NP701"),
            (3, "same", "NP101"),
            (4, "emulated", "NP209"),
            (5, "no effect", "NP402"),
            (6, "emulated", "NP203"),
            (7, "refused", "NP203"),
            (8, "at run time", ""),
            (9, "emulated", "NP403"),
            (10, "emulated", ""),
            (11, "left", "NP101"),
        ]
        assert {site["processes"] for site in found["sites"]} == {1 + kept}


def test_what_counts_as_emulated_is_there() -> None:
    program = (
        "import torch, json, sys; from operator import attrgetter; from npuport.runtime import on_npu;"
        "[attrgetter(name)(on_npu) for name in json.loads(sys.argv[1])]"
    )
    own = [name for name in sites.HELPERS if name != "cuda.device_count"]  # which is torch_npu's
    names = own + [f"cuda.{name.split('.')[2]}" for name in sites.EMULATED]
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(names)],
        env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_notes_of_several_processes_are_gathered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = {"kind": "module", "file": str(tmp_path / "train.py"), "sites": [[3, "a", "b", "same", ""]], "problem": ""}
    for name in ("1", "2"):
        lines = [module, module, {"kind": "variable", "text": "X=1 has no effect"}]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "3.jsonl").write_text('{"kind": "stand-in", "name": "xformers"}\n{"kind": "mod')  # it was killed
    found = migration.gather(tmp_path)
    assert found["sites"] == [
        {"path": "train.py", "line": 3, "before": "a", "after": "b", "effect": "same", "code": "", "processes": 2}
    ]
    assert found["variables"] == ["X=1 has no effect"] and found["stand_ins"] == ["xformers"]
    assert [process["modules"] for process in found["processes"]] == [1, 1, 0]


def test_a_folder_that_is_not_there_stops_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(notes.VARIABLE, str(tmp_path / "on another machine"))
    notes.note("stand-in", name="xformers")
