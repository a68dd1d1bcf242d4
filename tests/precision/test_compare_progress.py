"""A long comparison shows in a terminal how far it is, and nothing where stderr goes elsewhere."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from msprobe_dumps import forward, tensor, write_dump

from npuport.cli import shared
from npuport.cli.precision_compare import compare_folders

CALLS = 200


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def dumps(tmp_path: Path) -> tuple[Path, Path]:
    calls = {f"Functional.relu.{number}.forward": forward([tensor(4)], [tensor(4)]) for number in range(CALLS)}
    for name in ("a", "b"):
        write_dump(tmp_path / name, calls)
    return tmp_path / "a", tmp_path / "b"


def test_a_bar_moves_in_a_terminal(dumps: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shared, "_REDRAWN_AFTER", 0.0)
    monkeypatch.setattr(shared, "_LONG_TO_READ", 0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    compare_folders(*dumps, as_json=False)
    shown = terminal.getvalue()
    assert "reading step 0, rank 0" in shown
    counts = [int(count) for count in re.findall(rf"(\d+)/{CALLS}", shown)]
    assert counts == sorted(counts)
    assert set(counts) == set(range(CALLS + 1))


def test_work_that_is_quick_is_drawn_a_few_times_only(
    dumps: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shared, "_REDRAWN_AFTER", 1000.0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    compare_folders(*dumps, as_json=False)
    assert len(set(re.findall(rf"(\d+)/{CALLS}", terminal.getvalue()))) <= 2  # the first and the last


def test_a_pipe_gets_nothing(dumps: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_LONG_TO_READ", 0)
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    compare_folders(*dumps, as_json=False)
    assert pipe.getvalue() == ""
