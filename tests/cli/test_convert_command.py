"""`npuport convert`: to a copy, in place, as a diff, as a check; nothing is destroyed and nothing is silent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from running import CONVERTED, TRAIN, Npuport

from npuport.findings import Finding, Outcome, Verdict
from npuport.rules.engine import check_file


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_copy(npuport: Npuport, project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = npuport("convert", project, "-o", out)
    assert (result.code, result.err) == (0, "")
    first, second, third = result.out.splitlines()
    assert first == f"1 edit in 1 file, 1 file unchanged, 0 findings left for you     {out}/npuport-changes.md"
    assert second.startswith("Checked: every converted file still parses; no CUDA reference is unexplained;")
    assert third == f"Next:   cd {out} && npuport run --sim -- python train.py"
    assert (out / "train.py").read_text() == CONVERTED
    assert (out / "data.py").read_bytes() == b"x = 1\r\n"
    assert (project / "train.py").read_text() == TRAIN
    assert json.loads((out / "npuport-changes.json").read_bytes())["files"][0]["path"] == "train.py"


def test_a_second_run_changes_nothing(npuport: Npuport, project: Path, tmp_path: Path) -> None:
    npuport("convert", project, "-o", tmp_path / "out")
    check = npuport("convert", tmp_path / "out", "--check")
    assert (check.code, check.out) == (0, "")


def test_an_output_with_other_files_needs_force(npuport: Npuport, project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    refused = npuport("convert", project, "-o", out)
    assert refused.code == 2
    assert refused.err.endswith("Choose another place with -o, or replace it with --force.\n")
    assert (out / "mine.txt").read_text() == "mine"
    assert npuport("convert", project, "-o", out, "--force").code == 0
    assert not (out / "mine.txt").exists()
    assert npuport("convert", project, "-o", out).code == 0


def test_an_output_that_cannot_be_written(npuport: Npuport, project: Path) -> None:
    result = npuport("convert", project, "-o", project / "train.py" / "out")
    assert result.code == 2
    assert result.err == f"npuport: {project / 'train.py'} is a file. Choose a directory with -o.\n"


def test_a_read_only_output(npuport: Npuport, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*arguments: object, **options: object) -> None:  # noqa: ARG001
        raise PermissionError(13, "Permission denied", str(tmp_path / "out"))

    monkeypatch.setattr("npuport.conversion.tree.tempfile.TemporaryDirectory", denied)
    result = npuport("convert", project, "-o", tmp_path / "out")
    assert result.code == 2
    assert "cannot be written: permission denied. Choose another place with -o." in result.err


def test_in_place_and_back(npuport: Npuport, project: Path) -> None:
    result = npuport("convert", project, "--in-place")
    assert result.code == 0
    assert "git apply npuport-undo.patch" in result.out
    assert (project / "train.py").read_text() == CONVERTED
    again = npuport("convert", project, "--in-place")
    assert again.out.startswith("0 edits in 0 files, 2 files unchanged")
    assert "Undo" not in again.out
    assert not (project / "npuport-undo-2.patch").exists()


def test_a_diff_writes_nothing(npuport: Npuport, project: Path) -> None:
    before = names(project)
    result = npuport("convert", project, "--diff")
    assert result.code == 1
    assert result.out.startswith("--- a/train.py\n+++ b/train.py\n@@ -1,3 +1,3 @@\n")
    assert '\n-model = torch.nn.Linear(2, 2).to("cuda")\n+model = torch.nn.Linear(2, 2).to("npu")\n' in result.out
    assert result.err == "1 edit in 1 file; nothing was written\n"
    assert names(project) == before
    assert npuport("convert", project / "data.py", "--diff").code == 0


def test_check_names_the_files(npuport: Npuport, project: Path) -> None:
    result = npuport("convert", project, "--check")
    assert (result.code, result.out) == (1, "train.py\n")
    assert (project / "train.py").read_text() == TRAIN


def test_stdin_to_stdout(npuport: Npuport) -> None:
    result = npuport("convert", "-", stdin=TRAIN.encode())
    assert (result.code, result.out, result.err) == (0, CONVERTED, "")
    assert npuport("convert", "-", "--check", stdin=TRAIN.encode()).code == 1
    assert npuport("convert", "-", "--in-place", stdin=b"").code == 2
    assert npuport("convert", "-", stdin=b"x = '\xe9'\n").code == 2


def test_a_single_file(npuport: Npuport, project: Path, tmp_path: Path) -> None:
    out = tmp_path / "train_npu.py"
    assert npuport("convert", project / "train.py", "-o", out).code == 0
    assert out.read_text() == CONVERTED
    assert names(tmp_path) == ["demo", "train_npu.py"]
    refused = npuport("convert", project / "train.py", "-o", out)
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert npuport("convert", project / "train.py", "-o", out, "--force").code == 0
    (tmp_path / "there").mkdir()
    assert npuport("convert", project / "train.py", "-o", tmp_path / "there").code == 0
    assert (tmp_path / "there" / "train.py").read_text() == CONVERTED
    assert npuport("convert", project / "train.py", "--in-place").code == 0
    assert (project / "train.py").read_text() == CONVERTED
    assert names(project) == ["data.py", "train.py"]


@pytest.mark.parametrize("modes", [(), ("--diff", "--check"), ("--in-place", "-o", "x")])
def test_exactly_one_place_for_the_result(npuport: Npuport, project: Path, modes: tuple[str, ...]) -> None:
    result = npuport("convert", project, *modes)
    assert result.code == 2
    assert "exactly one of -o OUT, --in-place, --diff, --check" in result.err
    assert (project / "train.py").read_text() == TRAIN


def test_the_project_itself_is_no_output(npuport: Npuport, project: Path) -> None:
    assert "Use --in-place" in npuport("convert", project, "-o", project).err
    assert "contains" in npuport("convert", project, "-o", project.parent, "--force").err
    assert (project / "train.py").exists()


def test_an_output_inside_the_project(npuport: Npuport, project: Path) -> None:
    for _ in range(2):
        assert npuport("convert", project, "-o", project / "npu").code == 0
    assert names(project / "npu") == ["data.py", "npuport-changes.json", "npuport-changes.md", "train.py"]


def test_unreadable_input_is_copied_named_and_ends_with_2(npuport: Npuport, project: Path, tmp_path: Path) -> None:
    (project / "broken.py").write_bytes(b"x = '\xe9'  # cuda\n")
    (project / "old.py").write_text("print 'cuda'\n")
    (project / "loop").symlink_to(".")
    result = npuport("convert", project, "-o", tmp_path / "out")
    assert result.code == 2
    assert "broken.py: not read: line 1 is not utf-8" in result.err
    assert (tmp_path / "out" / "broken.py").read_bytes() == b"x = '\xe9'  # cuda\n"
    assert (tmp_path / "out" / "old.py").read_text() == "print 'cuda'\n"
    assert (tmp_path / "out" / "train.py").read_text() == CONVERTED
    assert "- `broken.py`: line 1 is not utf-8" in (tmp_path / "out" / "npuport-changes.md").read_text()


def test_a_latin_1_file_stays_latin_1(npuport: Npuport, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_bytes(b"# coding: latin-1\nimport torch\nd = torch.device('cuda')  # \xe9\r\n")
    npuport("convert", tmp_path / "src", "-o", tmp_path / "out")
    converted = (tmp_path / "out" / "a.py").read_bytes()
    assert converted == b"# coding: latin-1\nimport torch\nd = torch.device('npu')  # \xe9\r\n"


def test_what_no_finding_explains_is_a_defect_and_ends_with_2(
    npuport: Npuport, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(source, project, settings) -> list[Finding]:  # type: ignore[no-untyped-def]
        return [] if source.path == "train.py" else check_file(source, project, settings)

    monkeypatch.setattr("npuport.rules.cache.check_file", forgetful)
    result = npuport("convert", project, "-o", tmp_path / "out")
    assert result.code == 2
    assert "1 CUDA reference UNEXPLAINED" in result.out
    assert "train.py:3:35: cuda is left and no finding explains it. This is a defect of npuport." in result.err


def test_the_import_target(npuport: Npuport, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    script = f"{TRAIN}\nif __name__ == '__main__':\n    print(model)\n"
    (tmp_path / "src" / "train.py").write_text(script)
    assert npuport("convert", tmp_path / "src", "-o", tmp_path / "out", "--target", "import").code == 0
    first, rest = (tmp_path / "out" / "train.py").read_text().split("\n", 1)
    assert first.startswith("import npuport.auto")
    assert rest == script


def test_the_repository_of_an_output_is_never_replaced(npuport: Npuport, project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    npuport("convert", project, "-o", out)
    (out / ".git").mkdir()
    result = npuport("convert", project, "-o", out, "--force")
    assert result.code == 2
    assert "is a repository" in result.err
    shutil.rmtree(out / ".git")
    assert npuport("convert", project, "-o", out).code == 0


def library(project: Path) -> Path:
    """The project as a package that others install."""
    (project / "train.py").rename(project / "model.py")
    (project / "things").mkdir()
    (project / "things" / "__init__.py").write_text("")
    (project / "pyproject.toml").write_text('[project]\nname = "things"\n')
    return project


def test_a_library_keeps_running_on_gpus(npuport: Npuport, project: Path) -> None:
    diff = npuport("convert", library(project), "--diff")
    assert "DEVICE_TYPE = torch.accelerator" in diff.out
    assert diff.err.startswith("--target agnostic, for pyproject.toml declares the package things; --target npu writes")


def test_a_package_with_a_script_that_trains_is_a_training_repository(npuport: Npuport, project: Path) -> None:
    (library(project) / "train.py").write_text(TRAIN)
    diff = npuport("convert", project, "--diff")
    assert '+model = torch.nn.Linear(2, 2).to("npu")' in diff.out
    assert "pyproject.toml declares the package things, but train.py trains; --target agnostic writes" in diff.err


def test_the_target_that_is_given_holds(npuport: Npuport, project: Path) -> None:
    diff = npuport("convert", library(project), "--diff", "--target", "npu")
    assert '+model = torch.nn.Linear(2, 2).to("npu")' in diff.out
    assert diff.err.startswith("1 edit in 1 file")


def test_the_target_by_default_in_chinese(npuport: Npuport, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "zh")
    said = npuport("convert", library(project), "--check").err
    assert said.startswith("--target agnostic（默认，pyproject.toml 声明了软件包 things）")


NORM = """import torch


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
"""


@pytest.mark.parametrize("outcome", Outcome)
def test_a_fused_operator_is_put_in_when_it_is_proved(
    npuport: Npuport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    verdict = Verdict(outcome, "no torch here" if outcome is Outcome.UNTRIED else "")
    monkeypatch.setattr("npuport.proof.prove", lambda claims, *_, **__: [verdict] * len(claims))
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "norm.py").write_text(NORM)
    result = npuport("convert", tmp_path / "src", "-o", tmp_path / "out", "--unsafe-fixes")
    assert result.code == 0
    assert result.err == "proving 1 replacement on the simulated NPU\n"
    proved = outcome is Outcome.PROVED
    assert ("npu_rms_norm" in (tmp_path / "out" / "norm.py").read_text()) == proved
    assert f"Proved: {int(proved)} of 1 kinds of replacement by a fused operator are equal" in result.out
    assert ("One could not run: no torch here." in result.out) == (outcome is Outcome.UNTRIED)


def test_without_a_proof_the_record_says_that_there_was_none(npuport: Npuport, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "norm.py").write_text(NORM)
    assert npuport("convert", tmp_path / "src", "-o", tmp_path / "plain").code == 0
    assert (tmp_path / "plain" / "norm.py").read_text() == NORM
    result = npuport("convert", tmp_path / "src", "-o", tmp_path / "out", "--unsafe-fixes", "--no-verify")
    assert "npu_rms_norm" in (tmp_path / "out" / "norm.py").read_text()
    assert "Proved" not in result.out + result.err
    assert "applied without a proof" in (tmp_path / "out" / "npuport-changes.md").read_text()
