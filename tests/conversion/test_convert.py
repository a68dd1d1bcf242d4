"""One file: the fixes that are trusted are in the new text, and the new text can be used."""

from __future__ import annotations

import json

import pytest
from words import finding_at, replacing

from npuport.conversion.convert import BrokenFixError, convert_text
from npuport.findings import Applicability, Edit, Fix
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project

SETTINGS = Settings()


def python(text: str, encoding: str = "utf-8") -> SourceFile:
    return SourceFile("a.py", FileKind.PYTHON, text, encoding)


def convert(source: SourceFile, words: dict[str, str | None], unsafe: bool = False, level=Applicability.SAFE):  # type: ignore[no-untyped-def]
    return convert_text(source, replacing(words, level)(source, Project([source]), SETTINGS), unsafe)


def test_trusted_fixes_are_applied_and_the_rest_is_left() -> None:
    converted = convert(python("old = kept\r\n"), {"old": "new", "kept": None})
    assert converted.text == "new = kept\r\n"
    assert [one.code for one in converted.applied] == ["NP101"]
    assert [one.code for one in converted.left] == ["NP102"]


def test_unsafe_fixes_wait_to_be_asked_for() -> None:
    source = python("old = 1\n")
    assert convert(source, {"old": "new"}, False, Applicability.UNSAFE).text == source.text
    assert convert(source, {"old": "new"}, True, Applicability.UNSAFE).text == "new = 1\n"


def test_a_fix_that_breaks_python_is_refused_and_its_rule_named() -> None:
    with pytest.raises(BrokenFixError, match=r"would not parse \(NP102\)"):
        convert(python("old = bad\n"), {"old": "new", "bad": "((("})


def test_fixes_that_only_together_break_the_file_are_all_named() -> None:
    source = python("def f():\n    a\n    b\n")
    fixes = [Fix((Edit(at, at + 6, ""),), Applicability.SAFE) for at in (9, 15)]
    findings = [finding_at(source, 9, 14, "NP101", fixes[0]), finding_at(source, 15, 20, "NP102", fixes[1])]
    assert convert_text(source, findings[:1], unsafe=False).text == "def f():\n    b\n"
    with pytest.raises(BrokenFixError, match=r"\(NP101, NP102\)"):
        convert_text(source, findings, unsafe=False)


def test_text_that_never_parsed_may_be_edited_as_text() -> None:
    assert convert(python("print 'old'\n"), {"old": "new"}).text == "print 'new'\n"


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    with pytest.raises(BrokenFixError, match="iso-8859-1 lacks"):
        convert(python("# coding: latin-1\nx = 'old'\n", "iso-8859-1"), {"old": "昇腾"})


def test_edits_outside_the_text_are_refused() -> None:
    source = python("x = 1\n")
    fix = Fix((Edit(3, 99, ""),), Applicability.SAFE)
    with pytest.raises(BrokenFixError, match="3:99"):
        convert_text(source, [finding_at(source, 0, 1, fix=fix)], unsafe=False)


def test_json_stays_json() -> None:
    source = SourceFile("a.json", FileKind.JSON, '{"a": old}'.replace("old", '"old"'))
    assert convert(source, {"old": "new"}).text == '{"a": "new"}'
    with pytest.raises(BrokenFixError, match="would not be JSON"):
        convert(source, {"old": '"'})


def test_cells_of_a_notebook_still_parse() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# old ((("]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "old"]},
        {"cell_type": "code", "source": "x = old\n"},
    ]
    source = SourceFile("n.ipynb", FileKind.NOTEBOOK, json.dumps({"cells": cells}))
    assert json.loads(convert(source, {"old": "new"}).text)["cells"][2]["source"] == "x = new\n"
    with pytest.raises(BrokenFixError, match="cell 2"):
        convert(source, {"old": "((("})
    with pytest.raises(BrokenFixError, match="would not be JSON"):
        convert(source, {"old": '"'})
