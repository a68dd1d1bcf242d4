"""Kinds of edits that people made to bring CUDA programs to NPUs: each is made, reported, or known to be needless.

The kinds were gathered from public ports and put in our own words; the programs in ``edit_kinds.csv`` are written for
this test, with "\\n" for the ends of lines. ``how`` is "converted" (by a safe fix into ``shows``), "unsafe" (by an
unsafe one), "reported" (a finding whose message holds ``shows``) or "unneeded" (nothing is said, for the reason that
``shows`` gives; where that was measured, ``test_edits_that_are_not_needed.py`` measures it).
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from npuport.conversion.rounds import convert_files
from npuport.findings import Severity
from npuport.rules.engine import check_file
from npuport.rules.settings import Settings
from npuport.source.files import FileKind, SourceFile
from npuport.source.project import Project

with Path(__file__).with_name("edit_kinds.csv").open(encoding="utf-8", newline="") as _table:
    KINDS = list(csv.DictReader(_table))
_ASKED = {"target": "target", "chip": "chip", "torch": "torch_version"}


def _lines(text: str) -> str:
    return text.replace("\\n", "\n") + "\n"


def _settings(kind: dict[str, str]) -> Settings:
    given = (option.partition("=") for option in kind["options"].split())
    return Settings(**{_ASKED[name]: value for name, _, value in given})


def test_every_kind_is_there_once() -> None:
    assert len(KINDS) == 78
    assert len({kind["kind"] for kind in KINDS}) == 78


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind["kind"]) for kind in KINDS])
def test_edit_kind(kind: dict[str, str]) -> None:
    settings = _settings(kind)
    source = SourceFile("case.py", FileKind.PYTHON, _lines(kind["before"]))
    found = check_file(source, Project([source]), settings)
    if kind["how"] == "unneeded":
        loud = [finding for finding in found if finding.severity in (Severity.ERROR, Severity.WARNING)]
        assert not loud, loud
        assert kind["shows"] and not kind["rule"]
        done = convert_files([source], settings, unsafe=True, jobs=1)
        assert done.files[0].text == source.text
        return
    own = [finding for finding in found if finding.code == kind["rule"]]
    assert own, f"{kind['rule']} says nothing; others: {[(finding.code, finding.message) for finding in found]}"
    if kind["how"] == "reported":
        assert any(kind["shows"] in finding.message for finding in own), [finding.message for finding in own]
        return
    done = convert_files([source], settings, unsafe=kind["how"] == "unsafe", jobs=1)
    assert done.files[0].text == _lines(kind["shows"])
