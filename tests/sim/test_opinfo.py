"""A slice of PyTorch's own operator database, on the npu device against the CPU (`make opinfo` runs all of it)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from opinfo import report

SLICE = ("--every", "8", "--samples", "3", "--dtypes", "float32,float16,bfloat16,int64,complex64")


def test_every_eighth_operator(simulated: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = simulated([Path(__file__).parent / "opinfo", *SLICE], timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    found = report.build(json.loads(done.stdout.splitlines()[-1]), report.known_reasons())
    assert found.operators > 70 and found.count(report.EQUAL) > 1000
    assert not found.unexplained, report.table(found)
    assert found.share > 0.97  # of so few operators; of all of them at least 99.5 %, as run.py asks


CASE = {"operator": "add", "dtype": "float32", "falls_back": [], "cut": False}
REASON = report.Reason("add|sub", "float.*", "out", "no device", "PyTorch knows no device here")


def cases(*details: list[object], **outcomes: int) -> list[dict[str, object]]:
    return [
        {
            **CASE,
            "outcomes": {name.replace("_", " "): count for name, count in outcomes.items()},
            "details": list(details),
        }
    ]


def test_a_new_kind_of_failure_is_unexplained() -> None:
    known = ["different", "out", "RuntimeError: no device", 2]
    other = ["different", "call", "RuntimeError: no device", 1]
    found = report.build(cases(known, other, equal=97, different=3), [REASON])
    assert [failure.reason for failure in found.failures] == [REASON.reason, report.UNEXPLAINED]
    assert found.share == 0.97
    assert "! add float32 call x 1: RuntimeError: no device" in report.table(found)


def test_what_torch_npu_refuses_is_no_measure() -> None:
    refused = ["refused by torch_npu", "call", "RuntimeError: ERR01007 OPS feature not supported", 5]
    found = report.build(cases(refused, equal=10, refused_by_torch_npu=5), [])
    assert found.share == 1.0 and len(found.unexplained) == 1
