from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npuport.analysis import run
from npuport.conversion import rounds
from npuport.findings import Finding
from npuport.rules import cache as module
from npuport.rules.cache import FindingsCache
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile, Tree
from npuport.source.project import Project
from npuport.source.questions import Answers

FILES = (
    SourceFile("a.py", FileKind.PYTHON, "from b import t\nt.cuda.synchronize()\nx = y.cuda()\n"),
    SourceFile("b.py", FileKind.PYTHON, "import torch as t\n"),
    SourceFile("run.sh", FileKind.SHELL, "export CUDA_VISIBLE_DEVICES=0\n"),
)
SETTINGS = Settings()


@pytest.fixture(autouse=True)
def _small_trees_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SMALLEST", 0)


@pytest.fixture
def cache(tmp_path: Path) -> FindingsCache:
    return FindingsCache(tmp_path / "findings")


def _noting(real: Callable[..., list[Finding]], paths: list[str]) -> Callable[..., list[Finding]]:
    def check_file(file: SourceFile, *rest: object) -> list[Finding]:
        paths.append(file.path)
        return real(file, *rest)

    return check_file


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that were checked, not looked up."""
    paths: list[str] = []
    monkeypatch.setattr(module, "check_file", _noting(module.check_file, paths))
    return paths


def tree(*files: SourceFile) -> Tree:
    return Tree(Path("project"), files, ())


def test_a_tree_is_checked_once(cache: FindingsCache, checked: list[str]) -> None:
    cold = run.analyze(tree(*FILES), SETTINGS, cache=cache)
    assert checked == ["a.py", "b.py", "run.sh"]
    assert run.analyze(tree(*FILES), SETTINGS, cache=cache).findings == cold.findings != ()
    assert len(checked) == 3
    assert run.analyze(tree(*FILES), SETTINGS).findings == cold.findings


def test_conversion_takes_what_analysis_found_and_gives_the_same(cache: FindingsCache, checked: list[str]) -> None:
    plain = rounds.convert_files(FILES, SETTINGS)
    run.analyze(tree(*FILES), SETTINGS, cache=cache)
    checked.clear()
    first = rounds.convert_files(FILES, SETTINGS, cache=cache)
    assert checked and set(checked) <= {file.source.path for file in first.changed} | {"a.py"}
    checked.clear()
    assert first == plain == rounds.convert_files(FILES, SETTINGS, cache=cache)
    assert not checked


def changed(files: tuple[SourceFile, ...], path: str, text: str) -> tuple[SourceFile, ...]:
    return tuple(replace(file, text=text) if file.path == path else file for file in files)


def again(
    cache: FindingsCache, checked: list[str], files: tuple[SourceFile, ...], settings: Settings = SETTINGS
) -> list[str]:
    """The files that are checked anew, after an analysis of FILES; what is found has to be what no cache finds."""
    run.analyze(tree(*FILES), SETTINGS, cache=cache)
    checked.clear()
    found = run.analyze(tree(*files), settings, cache=cache)
    anew = list(checked)
    assert found.findings == run.analyze(tree(*files), settings).findings
    return anew


def test_another_export_changes_what_is_found_elsewhere(cache: FindingsCache, checked: list[str]) -> None:
    cold = run.analyze(tree(*FILES), SETTINGS, cache=cache).findings
    elsewhere = changed(FILES, "b.py", "t = None\n")
    assert again(cache, checked, elsewhere) == ["a.py", "b.py"]
    found = run.analyze(tree(*elsewhere), SETTINGS, cache=cache).findings
    assert [finding.code for finding in cold if finding.location.path == "a.py"] == ["NP201", "NP104"]
    assert [finding.code for finding in found if finding.location.path == "a.py"] == ["NP902", "NP104"]


OTHERS = (
    SourceFile("c.py", FileKind.PYTHON, "from d import Net\nnet = Net().cuda()\n"),
    SourceFile("d.py", FileKind.PYTHON, "from e import *\nclass Net:\n    pass\n"),
    SourceFile("e.py", FileKind.PYTHON, "x = 1\n"),
)


@pytest.mark.parametrize(
    ("path", "text", "anew"),
    [
        ("a.py", "y.cuda()\n", ["a.py"]),
        ("run.sh", "export CUDA_VISIBLE_DEVICES=1\n", ["run.sh"]),
        # What c.py learns of d.py is that Net is a class there; more lines before it tell c.py nothing new.
        ("d.py", "from e import *\nimport os\nclass Net:\n    pass\n", ["d.py"]),
        ("d.py", "from e import *\nNet = None\n", ["c.py", "d.py"]),
        ("d.py", "from e import *\nclass Net:\n    def cuda(self):\n        pass\n", ["c.py", "d.py"]),
        ("e.py", "x = 2\n", ["e.py"]),
        ("e.py", "import torch\nDEVICE = 'cuda'\n", ["e.py"]),
    ],
)
def test_a_change_counts_for_those_who_asked(
    path: str, text: str, anew: list[str], cache: FindingsCache, monkeypatch: pytest.MonkeyPatch, checked: list[str]
) -> None:
    files = (*FILES, *OTHERS)
    monkeypatch.setitem(globals(), "FILES", files)
    assert set(anew) <= set(again(cache, checked, changed(files, path, text))) < {file.path for file in files}


def test_files_that_come_and_go_count(cache: FindingsCache, checked: list[str]) -> None:
    assert "a.py" in again(cache, checked, (FILES[0], FILES[2]))  # b is a package outside now
    assert again(cache, checked, (*FILES, SourceFile("z.py", FileKind.PYTHON, "pass\n"))) == ["z.py"]


@pytest.mark.parametrize("settings", [Settings("agnostic"), Settings(torch_version="2.6.0")])
def test_settings_count(settings: Settings, cache: FindingsCache, checked: list[str]) -> None:
    assert again(cache, checked, FILES, settings) == ["a.py", "b.py", "run.sh"]


def test_the_tree_counts(cache: FindingsCache, checked: list[str]) -> None:
    run.analyze(tree(*FILES), SETTINGS, cache=replace(cache, tree="another"))
    assert again(cache, checked, FILES) == []
    run.analyze(tree(*FILES), SETTINGS, cache=replace(cache, tree="a third"))
    assert checked.count("b.py") == 2


def test_the_rules_themselves_count(cache: FindingsCache, checked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run.analyze(tree(*FILES), SETTINGS, cache=cache)
    monkeypatch.setattr(module, "_tools", lambda: ("another npuport",))
    run.analyze(tree(*FILES), SETTINGS, cache=cache)
    assert len(checked) == 2 * len(FILES)


def test_every_kind_of_question_has_an_answer_that_tells_projects_apart() -> None:
    with Project(FILES).noting() as asked:
        pass
    assert not asked
    one, other = (
        Project(FILES),
        Project((SourceFile("c.py", FileKind.PYTHON, "class A:\n    def cuda(self): 0\n"),)),
    )
    with one.noting() as asked:
        one.module("b.py"), one.outline("b.py", "t"), one.text_before("b.py"), one.has("b.py")
        one.locate("b", "a.py"), one.holding("cuda"), one.imports_torch, one.classes_with_own_cuda, len(one.texts)
    assert len({question[0] for question in asked}) == 8
    for question in asked:
        assert Answers(one).to(question) == Answers(Project(FILES)).to(question)
        assert Answers(one).to(question) != Answers(other).to(question), question


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 500])
def test_a_damaged_entry_is_no_entry(damage: bytes, cache: FindingsCache) -> None:
    whole = run.analyze(tree(*FILES), SETTINGS, cache=cache)
    (entry,) = cache.folder.iterdir()
    entry.write_bytes(damage)
    assert run.analyze(tree(*FILES), SETTINGS, cache=cache).findings == whole.findings
    assert entry.read_bytes() != damage


def test_a_folder_that_cannot_be_made_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = FindingsCache(tmp_path / "file" / "findings")
    assert run.analyze(tree(*FILES), SETTINGS, cache=blocked).findings == run.analyze(tree(*FILES), SETTINGS).findings


def test_the_oldest_entries_go_first(cache: FindingsCache) -> None:
    for number in range(3):
        run.analyze(tree(*FILES), SETTINGS, cache=replace(cache, tree=str(number)))
        for place in cache.folder.iterdir():
            os.utime(place, ns=(number, number)) if place.stat().st_mtime_ns > 9 else None
    (size,) = {place.stat().st_size for place in cache.folder.iterdir()}
    run.analyze(tree(*FILES), SETTINGS, cache=FindingsCache(cache.folder, "3", limit=2 * size))
    assert len(list(cache.folder.iterdir())) == 2
    assert max(place.stat().st_mtime_ns for place in cache.folder.iterdir()) > 9


def test_little_is_not_kept(cache: FindingsCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SMALLEST", 1000)
    run.analyze(tree(*FILES), SETTINGS, cache=cache)
    assert not cache.folder.exists()
