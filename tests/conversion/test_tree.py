"""The converted tree is written whole or not at all, and destroys nothing that is not npuport's."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from words import replacing

from npuport.conversion.record import JSON, MARKDOWN, Record, diff
from npuport.conversion.rounds import Conversion, convert_files
from npuport.conversion.tree import OutputError, Written, check_output, write_copy, write_in_place
from npuport.rules.settings import Settings
from npuport.source.files import Tree, read_tree

SETTINGS = Settings()


@pytest.fixture(autouse=True)
def _toy_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npuport.rules.cache.check_file", replacing({"old": "new", "kept": None}))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    files = {
        "train.py": b"x = old\n",
        "same.py": b"x = 1\r\n# \xe2\x82\xac\x0c\n",
        "latin.py": b"# coding: latin-1\nx = old  # \xe9\n",
        "pkg/crlf.py": b"\xef\xbb\xbfy = old\r\nz = kept\r\n",
        "pkg/data.bin": bytes(range(256)),
        "run.sh": b"#!/bin/sh\necho old",
        ".git/HEAD": b"ref: x\n",
        "__pycache__/a.pyc": b"x",
    }
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    (root / "empty").mkdir()
    (root / "run.sh").chmod(0o755)
    (root / "link.py").symlink_to("train.py")
    (root / "loop").symlink_to(".")
    os.utime(root / "same.py", ns=(1_500_000_000_000_000_000,) * 2)
    return root


def convert(root: Path) -> tuple[Tree, Conversion]:
    tree = read_tree(root)
    return tree, convert_files(tree.files, SETTINGS)


def records(tree: Tree, conversion: Conversion) -> dict[str, bytes]:
    record = Record("project", conversion, tree.skipped, SETTINGS)
    return {MARKDOWN: record.markdown(), JSON: record.json()}


def copy(root: Path, out: Path) -> Written:
    tree, conversion = convert(root)
    return write_copy(tree, conversion, out, records(tree, conversion))


def contents(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts
    }


def test_a_copy_has_everything_but_version_control_and_caches(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    written = copy(project, out)
    found = contents(out)
    assert found.pop(MARKDOWN)
    assert found.pop(JSON)
    assert found == {
        "train.py": b"x = new\n",
        "same.py": b"x = 1\r\n# \xe2\x82\xac\x0c\n",
        "latin.py": b"# coding: latin-1\nx = new  # \xe9\n",
        "pkg/crlf.py": b"\xef\xbb\xbfy = new\r\nz = kept\r\n",
        "pkg/data.bin": bytes(range(256)),
        "run.sh": b"#!/bin/sh\necho new",
    }
    assert written.copied == 2
    assert (out / "empty").is_dir()
    assert (out / "link.py").readlink() == Path("train.py")
    assert (out / "loop").readlink() == Path()
    assert not (out / ".git").exists()
    assert list((tmp_path / "deep").iterdir()) == [out], "nothing is left beside the output"


def test_modes_and_times_are_kept(project: Path, tmp_path: Path) -> None:
    project.chmod(0o750)
    out = tmp_path / "out"
    copy(project, out)
    assert stat.S_IMODE((out / "run.sh").stat().st_mode) == 0o755
    assert (out / "same.py").stat().st_mtime_ns == 1_500_000_000_000_000_000
    assert stat.S_IMODE(out.stat().st_mode) == 0o750
    assert (out / "pkg").stat().st_mtime_ns == (project / "pkg").stat().st_mtime_ns


def test_converting_the_output_again_changes_nothing(project: Path, tmp_path: Path) -> None:
    copy(project, tmp_path / "out")
    _, again = convert(tmp_path / "out")
    assert again.changed == ()
    copy(tmp_path / "out", tmp_path / "again")
    first, second = contents(tmp_path / "out"), contents(tmp_path / "again")
    for record in (MARKDOWN, JSON):
        del first[record], second[record]
    assert first == second


def test_an_output_inside_the_project_is_not_copied_into_itself(project: Path) -> None:
    for _ in range(2):
        tree = read_tree(project, without=project / "npu")
        check_output(project, project / "npu", force=False)
        conversion = convert_files(tree.files, SETTINGS)
        write_copy(tree, conversion, project / "npu", records(tree, conversion))
        assert not (project / "npu" / "npu").exists()


def test_an_earlier_output_is_replaced(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    copy(project, out)
    (project / "same.py").unlink()
    (out / "__pycache__").mkdir()
    (out / "__pycache__" / "x.pyc").write_bytes(b"made by running it")
    check_output(project, out, force=False)
    copy(project, out)
    assert not (out / "same.py").exists()


@pytest.mark.parametrize("name", ["train.py", "checkpoint.pt", "pkg/more.py"])
def test_an_earlier_output_with_other_work_in_it_is_not_replaced(project: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    copy(project, out)
    written = (out / JSON).stat().st_ctime_ns
    while True:  # until the clock of the file system has moved on
        (out / name).write_bytes(b"mine")
        if (out / name).stat().st_ctime_ns > written:
            break
    os.utime(out / name, ns=(0, 0))
    with pytest.raises(OutputError, match=f"{name}.*--force"):
        check_output(project, out, force=False)
    check_output(project, out, force=True)


def test_places_that_must_not_be_overwritten(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    check_output(project, other, force=False)
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="not empty"):
        check_output(project, other, force=False)
    check_output(project, other, force=True)
    (other / ".git").mkdir()
    for force in (False, True):
        for place, words in (
            (other, "repository"),
            (project, "--in-place"),
            (project.parent, "contains"),
            (project / "..", "contains"),
            (other / "thesis.txt", "is a file"),
        ):
            with pytest.raises(OutputError, match=words):
                check_output(project, place, force)
    link = tmp_path / "alias"
    link.symlink_to(project)
    with pytest.raises(OutputError, match="--in-place"):
        check_output(project, link, force=True)


def test_an_output_below_a_file_is_refused_in_one_sentence(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match=r"cannot be written: (not a directory|file exists)"):
        copy(project, tmp_path / "file" / "out")


CTRL_C = (KeyboardInterrupt(), KeyboardInterrupt, "^$")


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [(PermissionError(13, "Permission denied", "out"), OutputError, "permission denied"), CTRL_C],
)
def test_a_copy_that_is_not_finished_leaves_nothing_behind(
    error: BaseException,
    raised: type[BaseException],
    words: str,
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    copy(project, out)
    before = contents(out)

    def stopped(source: object, target: object, **options: object) -> None:  # noqa: ARG001
        raise error

    monkeypatch.setattr(shutil, "copy2", stopped)
    with pytest.raises(raised, match=words):
        copy(project, out)
    assert contents(out) == before
    assert sorted(tmp_path.iterdir()) == [out, project]


def test_a_file_that_cannot_be_read_is_missing_and_named(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.copy2

    def denied(source: Path, target: Path, **options: bool) -> object:
        if Path(source).name == "data.bin":
            raise PermissionError(13, "Permission denied", source)
        return real(source, target, **options)

    monkeypatch.setattr(shutil, "copy2", denied)
    assert copy(project, tmp_path / "out").missing == ("pkg/data.bin",)
    assert (tmp_path / "out" / "train.py").read_bytes() == b"x = new\n"


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [(OSError(28, "No space left on device", "out"), OutputError, "no space left"), CTRL_C],
)
def test_an_output_that_is_not_renamed_into_place_keeps_the_old_one(
    error: BaseException,
    raised: type[BaseException],
    words: str,
    project: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    copy(project, out)
    before = contents(out)
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(raised, match=words):
        copy(project, out)
    assert contents(out) == before


def test_in_place_replaces_changed_files_only(project: Path) -> None:
    untouched = (project / "same.py").stat()
    tree, conversion = convert(project)
    written = write_in_place(tree, conversion, records(tree, conversion))
    assert (project / "train.py").read_bytes() == b"x = new\n"
    assert stat.S_IMODE((project / "run.sh").stat().st_mode) == 0o755
    assert (project / "same.py").stat().st_ino == untouched.st_ino
    assert written.undo == project / "npuport-undo.patch"
    assert (project / MARKDOWN).exists()
    assert not list(project.rglob(".npuport-*"))
    tree, conversion = convert(project)
    assert write_in_place(tree, conversion, {}).undo is None


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_undo_patch_brings_every_byte_back(project: Path) -> None:
    before = contents(project)
    tree, conversion = convert(project)
    write_in_place(tree, conversion, records(tree, conversion))
    shutil.rmtree(project / ".git")
    subprocess.run(["git", "apply", "npuport-undo.patch"], cwd=project, check=True)
    after = contents(project)
    for name in (MARKDOWN, JSON, "npuport-undo.patch"):
        del after[name]
    assert after == before


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_diff_makes_the_conversion(project: Path, tmp_path: Path) -> None:
    _, conversion = convert(project)
    shutil.rmtree(project / ".git")
    patch = tmp_path / "p.patch"
    patch.write_bytes(diff(conversion.changed))
    subprocess.run(["git", "apply", str(patch)], cwd=project, check=True)
    assert {file.source.path: (project / file.source.path).read_bytes() for file in conversion.files} == {
        file.source.path: file.encoded() for file in conversion.files
    }


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [(OSError(30, "Read-only file system", "x"), OutputError, "read-only file system"), CTRL_C],
)
@pytest.mark.parametrize("suffixes", [(".py", ".sh"), (".patch", ".py", ".md", ".json")])
def test_in_place_is_all_or_nothing(
    error: BaseException,
    raised: type[BaseException],
    words: str,
    suffixes: tuple[str, ...],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = contents(project)
    tree, conversion = convert(project)
    replace = Path.replace
    count = 0

    def failing(self: Path, target: Path) -> Path:
        nonlocal count
        count += target.suffix in suffixes
        if count == 2 * len(suffixes) - 2:
            count += 1
            raise error
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(raised, match=words):
        write_in_place(tree, conversion, records(tree, conversion))
    assert count > 2 * len(suffixes) - 2
    assert contents(project) == before
