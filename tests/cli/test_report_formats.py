"""Findings in the formats of other tools, as the command line writes them."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import jsonschema
import pytest
from running import CONVERTED, TRAIN, Npuport


@pytest.fixture
def sarif_schema() -> dict[str, object]:
    """The official schema (OASIS, errata 01), where NPUPORT_SARIF_SCHEMA says that it lies."""
    place = os.environ.get("NPUPORT_SARIF_SCHEMA")
    if not place:
        pytest.skip("NPUPORT_SARIF_SCHEMA does not name the official schema")
    schema: dict[str, object] = json.loads(Path(place).read_text(encoding="utf-8"))
    return schema


@pytest.fixture
def awkward(project: Path) -> Path:
    """Every severity, a fix with several edits, a path to be escaped, and a file that cannot be read."""
    (project / "two words ü.py").write_text(
        "import torch\nfrom torch.cuda.amp import GradScaler\ns = GradScaler()\nx = s.cuda()\n"
    )
    (project / "broken.py").write_text("def (\n")
    (project / "latin.py").write_bytes(b"# caf\xe9 cuda\n")
    return project


def test_sarif_is_what_the_official_schema_says(
    npuport: Npuport, awkward: Path, sarif_schema: dict[str, object]
) -> None:
    jsonschema.Draft4Validator(sarif_schema).validate(json.loads(npuport("analyze", awkward, "--format", "sarif").out))


def test_sarif(npuport: Npuport, awkward: Path) -> None:
    result = npuport("analyze", awkward, "--format", "sarif")
    run = json.loads(result.out)["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[one["ruleIndex"]]["id"] for one in run["results"]] == [one["ruleId"] for one in run["results"]]
    assert all(rule["help"]["markdown"].startswith(f"# {rule['id']} ") for rule in rules)
    assert all(one["kind"] == "fail" or one["level"] == "none" for one in run["results"])
    device = next(one for one in run["results"] if one["ruleId"] == "NP101")
    place = device["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "train.py", "uriBaseId": "SRCROOT"}
    region = place["region"]
    assert TRAIN.splitlines()[region["startLine"] - 1][region["startColumn"] - 1 : region["endColumn"] - 1] == '"cuda"'
    replacement = device["fixes"][0]["artifactChanges"][0]["replacements"][0]
    region, line = replacement["deletedRegion"], TRAIN.splitlines()[2]
    assert (
        line[: region["startColumn"] - 1] + replacement["insertedContent"]["text"] + line[region["endColumn"] - 1 :]
    ) == CONVERTED.splitlines()[2]
    assert any(
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "two%20words%20%C3%BC.py"
        for one in run["results"]
    )
    assert not run["invocations"][0]["executionSuccessful"]
    assert "latin.py" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    assert result.code == 2  # a file was not read


def test_fingerprints_survive_edits_elsewhere(npuport: Npuport, project: Path) -> None:
    def marks() -> list[str]:
        run = json.loads(npuport("analyze", project, "--format", "sarif").out)["runs"][0]
        return [one["partialFingerprints"]["npuport/v1"] for one in run["results"]]

    before = marks()
    script = project / "train.py"
    script.write_text("# a new first line\n" + TRAIN + TRAIN.splitlines()[2] + "\n")
    after = marks()
    assert after[: len(before)] == before
    assert len(set(after)) == len(after) == len(before) + 1


def test_github_annotations(npuport: Npuport, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent)
    lines = npuport("analyze", project.name, "--format", "github").out.splitlines()
    assert lines[0].startswith(
        "::error file=demo/train.py,line=3,col=34,endLine=3,endColumn=40,title=NP101 cuda-device-string::"
    )
    (project / "a.py").write_text("x = '100% cuda,\\n: yes'\n")
    assert all("\n" not in line and line.count("::") == 2 for line in lines)


def test_markdown(npuport: Npuport, project: Path) -> None:
    text = npuport("analyze", project, "--format", "markdown").out
    assert text.startswith("# Porting demo to Ascend\n")
    assert "## must change (1)" in text and "- `train.py:3` " in text and "| `train.py` | 1 | 0 | 0 |" in text


def test_csv_files_of_the_vendor_tool(npuport: Npuport, project: Path, tmp_path: Path) -> None:
    (project / "b.py").write_text("import torch\ntorch.cuda.comm.broadcast([], [0])\n")
    assert npuport("analyze", project, "--csv", tmp_path / "csv").code == 1

    def table(name: str) -> list[list[str]]:
        return list(csv.reader(io.StringIO((tmp_path / "csv" / name).read_text(encoding="utf-8-sig"), newline="")))

    assert table("change_list.csv")[0][:5] == ["File", "Start Line", "End Line", "Operation Type", "Message"]
    assert table("change_list.csv")[1][:4] == ["train.py", "3", "3", "MODIFY"]
    rows = table("unsupported_api.csv")
    assert rows[0][:5] == ["File", "Start Line", "End Line", "OP", "Tips"]
    assert rows[1][0] == "b.py" and rows[1][3] == "torch.cuda.comm.broadcast"
    (tmp_path / "taken").write_text("")
    wrong = npuport("analyze", project, "--csv", tmp_path / "taken")
    assert wrong.code == 2 and "needs a directory" in wrong.err


def test_a_baseline_leaves_only_what_is_new(npuport: Npuport, project: Path) -> None:
    known = project / "known.json"
    missing = npuport("analyze", project, "--baseline", known)
    assert (
        missing.code == 2
        and missing.err == f"npuport: {known} does not exist. Make it with --write-baseline {known}.\n"
    )
    assert npuport("analyze", project, "--write-baseline", known).code == 1
    same = npuport("analyze", project, "--baseline", known)
    assert same.code == 0 and "left out" in same.err
    (project / "new.py").write_text(TRAIN)
    new = npuport("analyze", project, "--baseline", known, "--format", "concise")
    assert new.code == 1 and [line.split(":")[0] for line in new.out.splitlines()] == ["new.py"]
    (project / "train.py").write_text("x = 1\n")
    assert "no longer there: --write-baseline" in npuport("analyze", project, "--baseline", known).err
    known.write_text("[]")
    assert "is no baseline of npuport" in npuport("analyze", project, "--baseline", known).err


def test_undo(npuport: Npuport, project: Path) -> None:
    before = {path: path.read_bytes() for path in project.iterdir()}
    assert npuport("undo", project).code == 2
    npuport("convert", project, "--in-place")
    assert (project / "train.py").read_text() == CONVERTED
    result = npuport("undo", project)
    assert (result.code, result.out.splitlines()[0]) == (0, "train.py")
    assert {path: path.read_bytes() for path in project.iterdir()} == before


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\f\n"])
def test_undo_gives_every_byte_back(npuport: Npuport, tmp_path: Path, ending: str) -> None:
    text = f"import torch{ending}" if ending else "import torch; x = torch.ones(1).cuda()"
    data = (
        (text + ("x = torch.ones(1).cuda()" if ending else "")).encode()
        + ending.encode() * 2
        + "y = torch.cuda.FloatTensor(1)  # ü".encode()
    )
    (tmp_path / "a.py").write_bytes(data)
    (tmp_path / "b.py").write_bytes(
        b"import torch\nfrom torch.cuda.amp import (\n    GradScaler,\n    autocast,\n)\ns = GradScaler()\n" * 2
    )
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    npuport("convert", tmp_path, "--in-place", "--unsafe-fixes")
    assert {path: path.read_bytes() for path in before} != before
    npuport("undo", tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_undo_of_a_changed_file_touches_nothing(npuport: Npuport, project: Path) -> None:
    (project / "z.py").write_text(TRAIN)
    npuport("convert", project, "--in-place")
    (project / "z.py").write_text("print(1)\n")
    result = npuport("undo", project)
    assert result.code == 2 and "has changed since the conversion" in result.err
    assert (project / "train.py").read_text() == CONVERTED


def test_guide(npuport: Npuport, project: Path, tmp_path: Path) -> None:
    (project / "b.py").write_text(
        "import torch\nimport flash_attn\ng = torch.cuda.CUDAGraph()\ntorch.cuda.comm.broadcast([], [0])\n"
    )
    result = npuport("guide", project)
    assert result.code == 0
    order = [
        "## The environment",
        "## Libraries",
        "**flash_attn**",
        "## What has to be written by hand",
        "### NP203",
        "## What to read and decide",
        "### NP210",
        "## What can be replaced",
        "### NP101",
        '-model = torch.nn.Linear(2, 2).to("cuda")',
        '+model = torch.nn.Linear(2, 2).to("npu")',
        "## Try it",
        "npuport run --sim -- python train.py",
    ]
    places = [result.out.index(words) for words in order]
    assert places == sorted(places)
    npuport("guide", project, "-o", tmp_path / "guide.md")
    assert (tmp_path / "guide.md").read_text() == result.out
