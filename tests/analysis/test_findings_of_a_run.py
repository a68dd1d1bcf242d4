"""A run's report confirms or clears what the source suggests."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from npuport.analysis import analyze
from npuport.analysis.run_report import joined, read_run_report
from npuport.errors import UserError
from npuport.findings import Finding
from npuport.rules.settings import Settings
from npuport.source.files import read_tree

SCRIPT = """import torch


def train(model, batches, optimizer):
    for x in batches:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        total = loss.item()
        other = loss.tolist()
        print(loss)
"""
PLACE = {"path": "train.py", "line": 9, "function": "train", "library": None, "source": ""}
EVENT = {"operator": "aten::_local_scalar_dense", "cause": "value", "place": PLACE, "count": 20, "per_step": 2.0}
REPORT: dict[str, Any] = {
    "schema": "npuport-run/1",
    "synchronizations": [
        EVENT,
        {**EVENT, "place": {**PLACE, "line": 11}, "per_step": 1.0},
        {**EVENT, "place": {**PLACE, "line": 6}, "per_step": 0.01},
        {**EVENT, "place": {**PLACE, "path": "/elsewhere/lib.py"}, "per_step": 5.0},
    ],
    "shapes": {"changing": [{"place": {**PLACE, "line": 6}, "operators": [{"operator": "aten::sum"}]}]},
}


def findings_with(folder: Path, report: object) -> dict[tuple[str, int], Finding]:
    (folder / "train.py").write_text(SCRIPT)
    tree = read_tree(folder)
    place = folder.parent / "run.json"
    place.write_text(json.dumps(report))
    run = read_run_report(place, [file.path for file in tree.files])
    found = joined(analyze(tree, Settings()).findings, run)
    return {(one.code, one.location.line): one for one in found}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def test_confirmed_cleared_and_only_seen(folder: Path) -> None:
    found = findings_with(folder, REPORT)
    assert set(found) == {("NP611", 9), ("NP611", 10), ("NP613", 11), ("NP614", 6)}
    confirmed, cleared = found["NP611", 9], found["NP611", 10]
    assert confirmed.severity.value == "warning" and "2 times a step" in confirmed.message
    assert cleared.severity.value == "info" and "did not wait here" in cleared.message
    assert "aten::_local_scalar_dense" in found["NP613", 11].message and "aten::sum" in found["NP614", 6].message


def test_a_file_that_the_run_did_not_reach_is_neither(folder: Path) -> None:
    report = copy.deepcopy(REPORT)
    for event in report["synchronizations"]:
        event["place"]["path"] = "other.py"
    report["shapes"]["changing"] = []
    report["migration"] = {"sites": [{"path": "train.py", "line": 9}]}  # it was loaded, no more
    found = findings_with(folder, report)
    assert {one.severity.value for one in found.values()} == {"advice"}


@pytest.mark.parametrize("report", [[], {"schema": "npuport-analysis/1"}, {"schema": "npuport-migration/1"}])
def test_what_is_no_report_is_refused(folder: Path, report: object) -> None:
    with pytest.raises(UserError, match="is no report of a run"):
        findings_with(folder, report)
