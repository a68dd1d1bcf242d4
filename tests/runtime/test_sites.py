"""Each call site once: what it became, and whether that is the same, emulated, without effect or refused."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from npuport.runtime import sites

SCRIPT = """import torch
import flash_attn
x = torch.zeros(2, device="cuda")
print(torch.cuda.get_device_capability())
torch.backends.cudnn.enabled = True
torch.cuda.nccl.version()
torch.cuda.temperature()
"""


@pytest.mark.skipif(importlib.util.find_spec("torch_npu") is None, reason="conversion in memory acts with torch_npu")
def test_sites_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "sites").mkdir()
    program = (
        "from pathlib import Path; from npuport.runtime.importer import converted_code;"
        "converted_code(Path('train.py').absolute(), Path.cwd())"
    )
    env = {**os.environ, sites.VARIABLE: str(tmp_path / "sites"), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    found = {(site.line, site.effect) for site in sites.gather(tmp_path / "sites")}
    assert {(2, "emulated"), (3, "same"), (4, "emulated"), (6, "emulated"), (7, "refused")} <= found
    assert [line.split()[2] for line in done.stderr.splitlines()] == ["NP203"]
    assert "train.py:7" in done.stderr


def test_what_counts_as_emulated_is_there() -> None:
    program = (
        "import torch, json, sys; from npuport.runtime import cuda;"
        "print(all(hasattr(cuda, name.split('.')[2]) for name in json.loads(sys.argv[1])))"
    )
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(list(sites.EMULATED))],
        env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "True\n", done.stderr


def test_sites_of_several_processes_are_gathered_once(tmp_path: Path) -> None:
    site = sites.Site("train.py", 3, "a", "b", "same")
    for name in ("1", "2"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(vars(site)) + "\n")
    assert sites.gather(tmp_path) == [site]
