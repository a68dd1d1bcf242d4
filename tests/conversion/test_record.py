"""The record names every change with its reason, and all that is left."""

from __future__ import annotations

import json

import pytest
from words import replacing

from npuport.conversion.record import Record, diff
from npuport.conversion.rounds import convert_files
from npuport.findings import Applicability
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, Skipped, SourceFile

SETTINGS = Settings()


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.setattr("npuport.rules.cache.check_file", replacing({"old": "new", "also": "too", "kept": None}))
    text = 'a = old + also\nb = kept\n"""\n```\nold\n```\n"""\n'
    conversion = convert_files([SourceFile("pkg/a.py", FileKind.PYTHON, text)], SETTINGS)
    return Record("demo", conversion, (Skipped("big.txt", "too big", unreadable=False),), SETTINGS)


def test_markdown_tells_every_change_with_its_reasons(record: Record) -> None:
    text = record.markdown().decode()
    assert "# What npuport changed in demo\n" in text
    assert "- 2 edits in 1 file\n- 1 finding left for you\n- 1 file not read\n" in text
    change = (
        "Line 1\n\n- NP101 a-word (safe): old is a word\n- NP102 a-word (safe): also is a word\n\n"
        "```diff\n-a = old + also\n+a = new + too\n```\n"
    )
    assert change in text
    assert "- `pkg/a.py:2:5` NP103 a-word (error): kept is a word\n" in text
    assert "- `big.txt`: too big\n" in text
    assert "Defects" not in text


def test_json_tells_the_same(record: Record) -> None:
    document = json.loads(record.json())
    assert document["schema"] == "npuport-changes/1"
    (file,) = document["files"]
    assert [(change["line"], change["before"], change["after"]) for change in file["changes"]] == [
        (1, "a = old + also\n", "a = new + too\n"),
        (5, "old\n", "new\n"),
    ]
    assert file["changes"][0]["reasons"][0] == {
        "code": "NP101",
        "name": "a-word",
        "message": "old is a word",
        "applicability": Applicability.SAFE.value,
    }
    assert [finding["code"] for finding in document["left"]] == ["NP103"]
    assert document["skipped"] == [{"path": "big.txt", "reason": "too big", "unreadable": False}]


def test_the_same_conversion_makes_the_same_bytes(record: Record) -> None:
    assert (record.json(), record.markdown()) == (record.json(), record.markdown())


def test_a_fence_in_the_source_does_not_end_the_diff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npuport.rules.cache.check_file", replacing({"old": "new"}))
    conversion = convert_files([SourceFile("a.md", FileKind.TEXT, "````old\n")], SETTINGS)
    text = Record("demo", conversion, (), SETTINGS).markdown().decode()
    assert "`````diff\n-````old\n+````new\n`````\n" in text


def test_a_diff_without_newline_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npuport.rules.cache.check_file", replacing({"old": "new"}))
    conversion = convert_files([SourceFile("a.txt", FileKind.TEXT, "x\x0cy\rz\nold")], SETTINGS)
    assert diff(conversion.changed).splitlines(keepends=False)[0] == b"--- a/a.txt"
    assert diff(conversion.changed).endswith(
        b" x\x0cy\rz\n-old\n\\ No newline at end of file\n+new\n\\ No newline at end of file\n"
    )
