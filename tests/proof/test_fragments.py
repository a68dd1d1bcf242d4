"""The fragments of docs/fused.md: every form is found, no look-alike is rewritten, and the page says what happens."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import fragment_table
from fragment_table import Row


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return fragment_table.rows()


def test_every_form_is_found(rows: list[Row]) -> None:
    forms = [row for row in rows if row.is_form]
    missed = [row.file for row in forms if not row.codes]
    assert len(forms) >= 50
    assert missed == []


def test_most_forms_are_rewritten_after_a_proof_and_the_others_say_why_not(rows: list[Row]) -> None:
    forms = [row for row in rows if row.is_form]
    assert sum(row.rewritten for row in forms) >= 0.85 * len(forms)
    assert [row.file for row in forms if not row.rewritten and not row.reason] == []
    assert [row.file for row in rows if row.rewritten and not row.verdicts] == []


def test_no_look_alike_is_rewritten(rows: list[Row]) -> None:
    alike = [row for row in rows if not row.is_form]
    assert len(alike) >= 20
    assert [row.file for row in alike if row.rewritten] == []


def test_what_looks_like_rms_norm_is_withheld_with_the_difference(rows: list[Row]) -> None:
    found = {row.file: row.reason for row in rows}
    assert found["alike_eps_outside"].startswith("it is not equal: the result differs by")
    assert found["alike_detached"].startswith("it is not equal: the gradient of x differs by")


def test_the_page_shows_these_results(rows: list[Row]) -> None:
    shown = fragment_table.outcomes(fragment_table.PAGE.read_text(encoding="utf-8"))
    assert shown == {row.what.replace("|", "\\|"): row.outcome for row in rows}, "run tools/fragment_table.py --write"
