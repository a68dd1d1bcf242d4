"""`npuport run --sim --report`: a run that ends well, badly, or is killed, in one process and in two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import npuport
from npuport.sim import SimulationUnavailable, environment

SCHEMA = json.loads((Path(npuport.__file__).parent / "report" / "schemas" / "npuport-run-1.json").read_text())

TRAIN = """
import sys, torch
model = torch.nn.Linear(8, 4).npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    loss = model(torch.ones(2 + step, 8).npu()).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
torch.npu.synchronize()
raise ValueError("after six steps")
"""

RANKS = """
import os, torch, torch.distributed as dist
dist.init_process_group("hccl")
torch.npu.set_device(dist.get_rank())
for _ in range(3):
    dist.all_reduce(torch.ones(5, device="npu"))
dist.destroy_process_group()
"""

KILLED = """
import os, signal, time, torch
weight = torch.ones(3, device="npu", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(4):
    weight.sum().backward()
    optimizer.step()
    time.sleep(1.5)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module", autouse=True)
def available() -> None:
    try:
        environment()
    except SimulationUnavailable as missing:
        pytest.skip(str(missing))


pytestmark = pytest.mark.sim


def run(
    folder: Path, program: str, *before: str, options: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    (folder / "train.py").write_text(program)
    command = [
        sys.executable,
        "-m",
        "npuport",
        "run",
        "--sim",
        "--report",
        "run.json",
        *options,
        "--",
        *before,
        "train.py",
    ]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NPUPORT_LANG": "en"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    document = json.loads((folder / "run.json").read_text())
    jsonschema.validate(document, SCHEMA)
    return done, document


def test_a_run_that_ends_with_an_error(tmp_path: Path) -> None:
    done, document = run(tmp_path, TRAIN, options=("--report", "run.html"))
    assert done.returncode == 1 and "ValueError: after six steps" in done.stderr
    assert done.stderr.splitlines()[-4:] == [
        "npuport: stopped: ValueError: after six steps (train.py:12). Recorded until then:",
        f"         6 steps · {len(document['operators'])} operators: {len(document['operators'])} native",
        "         1 host-device synchronisations a step, 1 of them from train.py:10 (print(loss.item()))"
        f" · shapes keep changing at {len(document['shapes']['changing'])} lines, most at train.py:6",
        "         peak memory 2.0 MiB of 64 GiB · report: run.json, run.html",
    ]
    assert document["run"]["complete"] is False and document["run"]["exit_code"] == 1
    waits = [
        (one["cause"], one["place"]["line"], one["count"], one["per_step"]) for one in document["synchronizations"]
    ]
    assert waits == [("value", 10, 6, 1.0), ("wait", 11, 1, 0.0)]
    (copy,) = [one for one in document["copies"] if one["place"]["line"] == 6]
    assert (copy["count"], copy["bytes"]) == (6, 4 * 8 * sum(range(2, 8)))
    (forward,) = [one for one in document["operators"] if one["name"] == "aten::addmm"]
    assert (forward["calls"], forward["distinct_shapes"]) == (6, 6)
    (change,) = [one for one in document["shapes"]["changing"] if one["place"]["line"] == 6]
    addmm = next(one for one in change["operators"] if one["operator"] == "aten::addmm")
    assert addmm["varying"] == [{"input": "mat1", "dimension": 0, "smallest": 2, "largest": 7, "distinct": 6}]
    assert "aten::addmm" in (tmp_path / "run.html").read_text()


def test_ranks_are_one_report(tmp_path: Path) -> None:
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    done, document = run(tmp_path, RANKS, *torchrun, options=("--devices", "2"))
    assert done.returncode == 0, done.stderr[-2000:]
    assert document["run"]["complete"] is True
    assert [one["rank"] for one in document["processes"]] == [0, 1]
    (collective,) = [one for one in document["collectives"] if one["operator"] == "c10d::allreduce_"]
    assert (collective["ranks"], collective["count"], collective["bytes"]) == ([0, 1], 6, 6 * 20)
    assert (collective["dtype"], collective["group"], collective["place"]["line"]) == ("float32", 2, 6)


def test_a_killed_process_leaves_what_it_wrote_last(tmp_path: Path) -> None:
    done, document = run(tmp_path, KILLED)
    assert done.returncode == 137
    assert "npuport: stopped: the run ended with exit code 137. Recorded until then:" in done.stderr
    assert document["run"]["complete"] is False and document["processes"][0]["ended"] is False
    assert 1 <= document["run"]["steps"] <= 4
