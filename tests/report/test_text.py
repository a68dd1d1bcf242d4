"""Findings in full and in one line, exactly as they are printed."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from samples import SOURCE, TEXT, finding

from npuport.findings import Applicability, Edit, Finding, Fix, Severity
from npuport.report.text import concise, console, full, printable
from npuport.source.files import FileKind, SourceFile


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "en")


def shown(found: Finding, source: SourceFile = SOURCE, width: int = 100) -> list[str]:
    return [line.plain.rstrip() for line in full([found], {source.path: source}, width)]


def test_a_finding_in_full() -> None:
    assert shown(finding()) == [
        "pkg/train.py:4:28  NP101 cuda-device-string  must change  safe fix",
        "    4 │     x = torch.zeros(2, device='cuda')  # 昇腾",
        "      │                               ^^^^^^ the device is called npu",
        "  fix │     x = torch.zeros(2, device='npu')  # 昇腾",
        "        [torch_npu, 2.13.0, measured]",
        "",
    ]


def test_a_message_too_long_for_the_caret_line_gets_its_own() -> None:
    lines = shown(finding(message="m" * 60), width=80)
    assert lines[2] == "      │                               ^^^^^^"
    assert lines[3] == "      │ " + "m" * 60


def test_edits_elsewhere_are_shown_with_their_line() -> None:
    lines = shown(finding(extra=(Edit(13, 13, "import torch_npu\n"),)))
    assert lines[3:5] == [
        "  fix │     x = torch.zeros(2, device='npu')  # 昇腾",
        "  fix │ import torch_npu   (line 2)",
    ]


def test_a_line_that_goes() -> None:
    source = SourceFile("pkg/train.py", FileKind.PYTHON, TEXT)
    assert shown(finding(TEXT[TEXT.index("\tx") : -1] + "\n", ""), source)[3] == "  fix │ (the line goes)"


def test_no_fix() -> None:
    lines = shown(finding(new=None))
    assert lines[0].endswith("will fail  no fix")
    assert not any(line.startswith("  fix") for line in lines)


def test_only_the_lines_that_change_are_shown_of_a_long_statement() -> None:
    text = "f(\n    1,\n    'cuda',\n)\n"
    found = finding()
    start = text.index("'cuda'")
    where = type(found.location)("a.py", 1, 1, 4, 2)
    assert found.fix
    fix = type(found.fix)((Edit(start, start + 6, "'npu'"),), Applicability.SAFE)
    long = Finding("NP101", "n", Severity.ERROR, where, "m", fix=fix)
    assert "  fix │     'npu'," in shown(long, SourceFile("a.py", FileKind.PYTHON, text))


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_long_line_is_cut_around_the_caret(width: int) -> None:
    text = "a = '" + "x" * 300 + "'; b = 'cuda'; c = '" + "y" * 300 + "'\n"
    start = text.index("'cuda'")
    found = finding()
    where = type(found.location)("a.py", 1, start + 1, 1, start + 7)
    lines = shown(Finding("NP101", "n", Severity.ERROR, where, "m"), SourceFile("a.py", FileKind.PYTHON, text), width)
    assert all(len(line) <= width for line in lines)
    caret = lines[2].index("^")
    assert lines[1][caret : caret + 6] == "'cuda'"


def test_a_long_fix_is_cut_around_what_changes() -> None:
    text = "a = '" + "x" * 300 + "'; b = 'cuda'; c = '" + "昇" * 300 + "'\n"
    start = text.index("'cuda'")
    found = finding()
    where = type(found.location)("a.py", 1, start + 1, 1, start + 7)
    fix = Fix((Edit(start, start + 6, "'npu'"),), Applicability.SAFE)
    source = SourceFile("a.py", FileKind.PYTHON, text)
    line = shown(Finding("NP101", "n", Severity.ERROR, where, "m", fix=fix), source, 60)[3]
    assert cell_len(line) <= 60
    assert "'; b = 'npu'; c = '昇" in line


def test_a_finding_in_a_notebook_shows_the_line_of_its_cell() -> None:
    source = SourceFile("n.ipynb", FileKind.NOTEBOOK, '{"cells": [{"source": ["a\\n", "b.cuda()"]}]}')
    found = finding(new=None)
    where = type(found.location)("n.ipynb", 2, 3, 2, 9, cell=0)
    lines = shown(Finding("NP101", "n", Severity.ERROR, where, "m"), source)
    assert lines[0].startswith("n.ipynb:cell 0:2:3  NP101")
    assert lines[1:3] == ["    2 │ b.cuda()", "      │   ^^^^^^ m"]


def test_concise() -> None:
    assert concise(finding()) == "pkg/train.py:4:28: NP101 [*] the device is called npu"
    assert concise(finding(new=None)) == "pkg/train.py:4:28: NP101 the device is called npu"


def test_nothing_in_a_file_steers_the_terminal() -> None:
    assert printable("a\x1b[31m\tb\u202e\udcff昇") == "a�[31m\tb��昇"
    text = "x = '\x1b]0;owned\x07cuda'\n"
    found = finding()
    where = type(found.location)("a.py", 1, 1, 1, 2)
    lines = shown(Finding("NP1", "n", Severity.ERROR, where, "m\x1b"), SourceFile("a.py", FileKind.PYTHON, text))
    assert "\x1b" not in "".join(lines)


def test_pipes_get_no_colour_and_no_cut_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    screen = console(stream)
    assert screen.width == 100
    for line in full([finding(message="m" * 300)], {SOURCE.path: SOURCE}, screen.width):
        screen.print(line)
    assert "\x1b" not in stream.getvalue()
    assert "m" * 300 in stream.getvalue()
