"""Converted modules are kept under all that their conversion depends on; nothing stale comes back."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from npuport.entries import Entries
from npuport.runtime import kept, target

SCRIPT = 'from settings import place\nimport torch\nx = torch.zeros(2, device="cuda")\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept, "_entries", lambda: Entries(tmp_path / "cache", ".module"))
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "settings.py").write_text('place = "cuda"\n')
    return tmp_path


def convert(folder: Path, name: str = "train.py") -> tuple[str | None, int]:
    """The text that a new process gets, and how many entries there are."""
    kept._project.cache_clear()
    kept._texts.cache_clear()
    text = kept.converted(folder / name, folder, (folder / name).read_bytes()).text
    return text, len(list((folder / "cache").iterdir()))


def test_a_module_is_converted_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept.converted(folder / "train.py", folder, SCRIPT.encode())
    monkeypatch.setitem(sys.modules, "npuport.runtime.in_memory", None)  # importing it fails
    again = kept.converted(folder / "train.py", folder, SCRIPT.encode())
    assert again == first and again.text is not None and 'device="npu"' in again.text and again.sites
    assert again.code.co_filename == str(folder / "train.py")


def test_whatever_conversion_depends_on_makes_another_entry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert convert(folder)[1] == 1
    (folder / "train.py").write_text(SCRIPT + "\n")
    assert convert(folder)[1] == 2
    (folder / "train.py").rename(folder / "other.py")
    assert convert(folder, "other.py")[1] == 3
    for machine in (("2.5.0", "Ascend910B3"), ("2.13.0", "Ascend910A")):
        monkeypatch.setattr(target, "machine", lambda machine=machine: machine)
        assert convert(folder, "other.py")[1] > 3
    entries = convert(folder, "other.py")[1]
    monkeypatch.setattr(kept, "_own", lambda: "another version of npuport")
    assert convert(folder, "other.py")[1] == entries + 1


def test_what_was_seen_of_other_files_must_still_be_so(folder: Path) -> None:
    (folder / "train.py").write_text("import helpers\nhelpers.model().cuda()\n")
    (folder / "helpers.py").write_text("class model:\n    def cuda(self):\n        print('mine')\n")
    own, _ = convert(folder)
    assert own is not None and ".cuda()" in own  # the project's own method
    (folder / "helpers.py").write_text("from torch import nn\ndef model():\n    return nn.Linear(2, 2)\n")
    changed, entries = convert(folder)
    assert changed is not None and ".npu()" in changed
    assert (entries, convert(folder)) == (1, (changed, 1))  # in place of what was kept before


def test_damage_means_that_nothing_is_known(folder: Path) -> None:
    text, _ = convert(folder)
    (entry,) = (folder / "cache").iterdir()
    entry.write_bytes(entry.read_bytes()[:-9] + b"something")
    assert convert(folder) == (text, 1)
    entry.write_bytes(b"")
    assert convert(folder) == (text, 1)
    (entry,) = (folder / "cache").iterdir()
    assert marshal.loads(entry.read_bytes()[32:])[2] == text


def test_without_a_folder_to_write_in_it_works_all_the_same(folder: Path) -> None:
    (folder / "cache").write_text("a file")
    text = kept.converted(folder / "train.py", folder, SCRIPT.encode()).text
    assert text is not None and 'device="npu"' in text


@pytest.mark.parametrize("value", [None, "", "/elsewhere"])
def test_entries_lie_in_the_users_cache_directory(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert kept._cache_folder() == platformdirs.user_cache_dir("npuport")


def test_two_processes_write_one_entry_at_once(tmp_path: Path) -> None:
    program = (
        "import sys; from npuport.entries import Entries\n"
        "entries = Entries(sys.argv[1], '.x')\n"
        "for number in range(300):\n"
        "    entries.write('key', bytes([int(sys.argv[2])]) * 50_000)\n"
        "    found = entries.read('key')\n"
        "    assert found is not None and len(found) == 50_000 and len(set(found)) == 1\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", program, tmp_path, name], env=os.environ) for name in ("1", "2")]
    assert [each.wait(timeout=60) for each in both] == [0, 0]
    assert [place.name for place in tmp_path.iterdir()] == ["key.x"]


def test_entries_not_used_for_longest_go_first(tmp_path: Path) -> None:
    entries = Entries(tmp_path, ".x")
    for name in ("old", "used", "new"):
        entries.write(name, b"0" * 1000)
    for age, name in enumerate(("new", "used", "old")):
        os.utime(tmp_path / f"{name}.x", (1_000_000 - age, 1_000_000 - age))
    entries.read("used")
    entries.shrink(2200)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["new.x", "used.x"]
