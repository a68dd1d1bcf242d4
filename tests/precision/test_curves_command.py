"""`npuport precision curves` as its users run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from precision_json import document_of


def log(path: Path, factor: float = 1.0) -> Path:
    path.write_text("".join(f"step {n} loss {(3 - n / 2000) * factor:.5f}\n" for n in range(1500)), encoding="utf-8")
    return path


def curves(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "npuport", "precision", "curves", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_two_equal_logs_agree(tmp_path: Path) -> None:
    done = curves(log(tmp_path / "a.log"), log(tmp_path / "b.log"))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "The curves agree")


def test_json_and_page_of_logs_that_do_not(tmp_path: Path) -> None:
    page = tmp_path / "out" / "curves.html"
    done = curves(log(tmp_path / "a.log"), log(tmp_path / "b 中.log", 1.05), "--json", "--html", page)
    assert done.returncode == 1
    document = document_of("curves", done.stdout)
    assert document["passes"] is False
    assert {one["name"]: one["holds"] for one in document["criteria"]}["mean-loss"] is False
    text = page.read_text(encoding="utf-8")
    assert "The curves do not agree" in text
    assert text.count("<svg") == 2
    assert "nan" not in text.lower().split("<svg", 1)[1].split("</svg>")[0]


@pytest.mark.parametrize("content", [None, "no numbers here"])
def test_a_log_that_says_nothing_is_one_line(content: str | None, tmp_path: Path) -> None:
    other = tmp_path / "b.log"
    if content is not None:
        other.write_text(content, encoding="utf-8")
    done = curves(log(tmp_path / "a.log"), other)
    assert (done.returncode, done.stdout) == (2, "")
    assert str(other) in done.stderr
    assert len(done.stderr.splitlines()) == 1
