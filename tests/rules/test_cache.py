from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport.analysis import run
from npuport.conversion import rounds
from npuport.findings import Finding
from npuport.rules import cache as module
from npuport.rules.cache import FindingsCache, key_of
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile, Tree

FILES = (
    SourceFile("a.py", FileKind.PYTHON, "from b import DEVICE\nmodel.to(DEVICE)\nx = y.cuda()\n"),
    SourceFile("b.py", FileKind.PYTHON, 'DEVICE = "cuda"\n'),
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
    for stage in (run, rounds):
        monkeypatch.setattr(stage, "check_file", _noting(stage.check_file, paths))
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


@pytest.mark.parametrize("place", range(3))
def test_a_change_in_any_file_counts(place: int) -> None:
    changed = list(FILES)
    old = changed[place]
    changed[place] = SourceFile(old.path, old.kind, old.text + "\n")
    moved = [*FILES[:place], SourceFile("other/" + old.path, old.kind, old.text), *FILES[place + 1 :]]
    keys = {key_of(files, SETTINGS) for files in (FILES, changed, moved, FILES[:place] + FILES[place + 1 :])}
    assert len(keys) == 4


def test_settings_and_the_text_before_count() -> None:
    keys = {key_of(FILES, one) for one in (SETTINGS, Settings("agnostic"), Settings(torch_version="2.6.0"))}
    assert len(keys | {key_of(FILES, SETTINGS, FILES), key_of(FILES, SETTINGS, FILES[:1])}) == 5


def test_the_rules_themselves_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(FILES, SETTINGS)
    monkeypatch.setattr(module, "_tools", lambda: ("another npuport",))
    assert key_of(FILES, SETTINGS) != before


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
        cache.write(f"{number}", {"a.py": []})
        os.utime(cache.folder / f"{number}.findings", ns=(number, number))
    size = (cache.folder / "0.findings").stat().st_size
    FindingsCache(cache.folder, limit=2 * size).write("3", {"a.py": []})
    assert sorted(place.name for place in cache.folder.iterdir()) == ["2.findings", "3.findings"]


def test_little_is_not_kept(cache: FindingsCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SMALLEST", 1000)
    run.analyze(tree(*FILES), SETTINGS, cache=cache)
    assert not cache.folder.exists()
