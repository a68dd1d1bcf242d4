"""`npuport analyze`: formats, exit codes, and awkward input."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from running import Npuport

from npuport.report.json_report import SCHEMA_FILE


def test_the_summary_names_the_next_step(npuport: Npuport, project: Path) -> None:
    result = npuport("analyze", project)
    assert result.code == 1
    assert result.out.startswith("demo · 2 Python files · torch 2.13.0, Ascend910B3")
    assert "must change" in result.out
    assert "train.py:3" in result.out
    assert f"npuport convert {project} -o {project}-npu" in result.out
    assert result.err == ""


def test_the_next_step_can_be_pasted(npuport: Npuport, project: Path, tmp_path: Path) -> None:
    spaced = project.rename(tmp_path / "my project")
    assert f"npuport convert '{spaced}' -o '{spaced}-npu'" in npuport("analyze", spaced).out


def test_a_clean_project(npuport: Npuport, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    result = npuport("analyze", tmp_path)
    assert (result.code, result.err) == (0, "")
    assert "no CUDA reference was found" in result.out


def test_json_follows_the_schema_and_is_alone_on_stdout(npuport: Npuport, project: Path) -> None:
    result = npuport("analyze", project, "--json")
    document = json.loads(result.out)
    jsonschema.validate(document, json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))
    assert result.code == 1
    assert document["files"] == {"python": 2}
    assert document["findings"][0]["path"] == "train.py"
    assert npuport("analyze", project, "--json").out == result.out


def test_concise_and_full(npuport: Npuport, project: Path) -> None:
    concise = npuport("analyze", project, "--format", "concise").out.splitlines()
    assert concise[0].startswith("train.py:3:34: NP101 [*] ")
    full = npuport("analyze", project, "--format", "full").out
    assert '    3 │ model = torch.nn.Linear(2, 2).to("cuda")' in full
    assert '  fix │ model = torch.nn.Linear(2, 2).to("npu")' in full


@pytest.mark.parametrize(("fail_on", "code"), [("error", 1), ("info", 1), ("never", 0)])
def test_fail_on(npuport: Npuport, project: Path, fail_on: str, code: int) -> None:
    assert npuport("analyze", project, "--fail-on", fail_on).code == code


def test_mild_findings_do_not_fail_by_default(npuport: Npuport, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("# trained on cuda\n")
    assert npuport("analyze", tmp_path).code == 0
    assert npuport("analyze", tmp_path, "--fail-on", "info").code == 1


def test_select_and_ignore(npuport: Npuport, project: Path) -> None:
    assert npuport("analyze", project, "--ignore", "NP101").code == 0
    assert npuport("analyze", project, "--ignore", "cuda-device-string").code == 0
    assert npuport("analyze", project, "--select", "NP1").code == 1
    assert npuport("analyze", project, "--select", "NP9,NP102").code == 0
    wrong = npuport("analyze", project, "--select", "NP1,XY7")
    assert wrong.code == 2
    assert wrong.err == "npuport: no rule is called XY7. `npuport explain` lists them.\n"


def test_a_single_file(npuport: Npuport, project: Path) -> None:
    result = npuport("analyze", project / "train.py")
    assert result.code == 1
    assert f"npuport convert {project / 'train.py'} --diff" in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), "npuport: nowhere does not exist. Check the path.\n"),
        ((".", "--json", "--format", "full"), "npuport: --json and --format exclude each other. Give one of them.\n"),
        ((".", "--torch", "two"), "npuport: 'two' is not a version of torch, such as 2.13.0.\n"),
        ((".", "--chip", "H100"), "npuport: unknown chip H100. Known are "),
    ],
)
def test_misuse_is_one_line_and_code_2(
    npuport: Npuport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = npuport("analyze", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(words)
    assert result.err.count("\n") == 1


def test_an_empty_directory(npuport: Npuport, tmp_path: Path) -> None:
    result = npuport("analyze", tmp_path)
    assert result.code == 2
    assert "holds no source files" in result.err


def test_what_cannot_be_read_is_named_the_rest_is_done_and_the_code_is_2(npuport: Npuport, project: Path) -> None:
    (project / "broken.py").write_bytes(b"x = '\xe9'\n")
    (project / "big.csv").write_bytes(b"1," * 10_000_000)
    (project / "loop").symlink_to(".")
    result = npuport("analyze", project, "--format", "concise")
    assert result.code == 2
    assert "train.py:3:34: NP101" in result.out
    assert "broken.py: not read: line 1 is not utf-8" in result.err
    assert "big.csv: not read: 20.0 MB" in result.err


def test_python_2_is_reported_and_the_rest_is_read(npuport: Npuport, project: Path) -> None:
    (project / "old.py").write_text("import torch\nprint 'on', torch.cuda.device_count()\n")
    result = npuport("analyze", project, "--format", "concise")
    assert result.code == 1
    assert "old.py:2:" in result.out
    assert "cannot parse" in result.out
    assert "train.py:3:34: NP101" in result.out


def test_a_latin_1_file_is_read_by_its_cookie(npuport: Npuport, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"# coding: latin-1\nimport torch\n# \xe9\nd = torch.device('cuda')\n")
    assert "a.py:4:18: NP101" in npuport("analyze", tmp_path, "--format", "concise").out


def test_a_rule_that_crashes_is_named(npuport: Npuport, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from npuport.rules.engine import check_file

    def crashing(source, project, settings):  # type: ignore[no-untyped-def]
        if source.path == "data.py":
            raise ZeroDivisionError("boom")
        return check_file(source, project, settings)

    monkeypatch.setattr("npuport.rules.cache.check_file", crashing)
    result = npuport("analyze", project, "--format", "concise")
    assert result.code == 2
    assert "train.py:3:34: NP101" in result.out
    assert "data.py: npuport failed (ZeroDivisionError: boom). This is a defect of npuport" in result.err


def test_a_defect_met_on_every_file_is_named_once(
    npuport: Npuport, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crashing(*arguments: object) -> None:  # noqa: ARG001
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("npuport.rules.cache.check_file", crashing)
    result = npuport("analyze", project)
    assert result.code == 2
    assert result.err.count("boom") == 1
    assert "… and in the same way on 1 file more" in result.err


def test_chinese(npuport: Npuport, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "zh")
    assert "必须修改" in npuport("analyze", project).out
    assert npuport("analyze", project / "nowhere").err.endswith("不存在。请检查路径。\n")


def test_the_fixes_for_a_library_keep_gpus(npuport: Npuport, project: Path) -> None:
    (project / "things").mkdir()
    (project / "things" / "__init__.py").write_text((project / "train.py").read_text())
    (project / "train.py").unlink()
    (project / "setup.py").write_text('from setuptools import setup\nsetup(name="things", packages=["things"])\n')
    for command in (("analyze",), ("guide",)):
        result = npuport(*command, project)
        assert "DEVICE_TYPE" in result.out or command == ("analyze",)
        assert result.err.startswith("--target agnostic, for setup.py declares the package things;")
    assert json.loads(npuport("analyze", project, "--json").out)["settings"]["target"] == "agnostic"
    assert json.loads(npuport("analyze", project, "--json", "--target", "npu").out)["settings"]["target"] == "npu"


def test_words_are_said_once_unless_asked_for(npuport: Npuport, project: Path) -> None:
    (project / "notes.py").write_text("# CUDA 12\nA = 1\n# and cuDNN\nB = 2\n# and NCCL\n")
    found = json.loads(npuport("analyze", project, "--json").out)["findings"]
    (words,) = [one for one in found if one["code"] == "NP901"]
    assert words["evidence"]["places"] == ["notes.py:3", "notes.py:5"]
    each = json.loads(npuport("analyze", project, "--json", "--select", "NP901").out)["findings"]
    assert [one["line"] for one in each] == [1, 3, 5]
