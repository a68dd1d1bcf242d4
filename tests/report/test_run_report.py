"""The report of a simulated run: its lines in the terminal, its page, its schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from pages import Page, embedded, opened
from run_samples import document, event, migration, operator, place

import npuport
from npuport.report.migration_summary import migration_lines
from npuport.report.run_page import run_page
from npuport.report.run_summary import run_summary
from npuport.report.run_words import size

SCHEMA = json.loads((Path(npuport.__file__).parent / "report" / "schemas" / "npuport-run-1.json").read_text())


def test_the_sample_follows_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(document(), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document(operators=[operator("aten::mm", "fine")]), SCHEMA)


def test_the_summary_says_what_an_engineer_asks_first() -> None:
    assert run_summary(document(), ["run.html"]) == [
        "10 steps · 3 operators: 2 native, 1 on the CPU on a real NPU (aten::lgamma.out)",
        "3 host-device synchronisations a step, 2 of them from train.py:12 (print(loss))"
        " · shapes keep changing at 1 line, most at train.py:8",
        "peak memory 312 MiB of 64 GiB · report: run.html",
    ]


def test_the_summary_of_a_quiet_run() -> None:
    shapes = {"warm_up": 2, "looked_for": True, "last_new_step": 0, "changing": []}
    quiet = document(operators=[operator("aten::mm", "native")], synchronizations=[], shapes=shapes)
    assert run_summary(quiet) == [
        "10 steps · 1 operator: 1 native",
        "no host-device synchronisation · no new shapes after step 1",
        "peak memory 312 MiB of 64 GiB",
    ]


def test_synchronisations_outside_of_steps_are_not_a_steps() -> None:
    events = [event(12, 4, 0.0, operator="aten::equal", cause="value")]
    (_, second, _) = run_summary(document(synchronizations=events))
    assert second.startswith(
        "no host-device synchronisation in a step after the first, 4 outside, 4 of them from train.py:12"
    )
    (_, second, _) = run_summary(document(synchronizations=events, run={"steps": 0}))
    assert second.startswith("4 host-device synchronisations, 4 of them from train.py:12")


def test_a_run_that_stopped_says_why_first() -> None:
    error = {"rank": 1, "type": "ValueError", "message": "broken\nand more", "place": place(20)}
    first, *rest = run_summary(document(error=error, run={"exit_code": 1, "complete": False}))
    assert first == "stopped: rank 1: ValueError: broken (train.py:20). Recorded until then:"
    assert len(rest) == 3
    killed = run_summary(document(run={"exit_code": 137, "complete": False}))
    assert killed[0] == "stopped: the run ended with exit code 137. Recorded until then:"
    assert run_summary(document(processes=[])) == ["nothing ran on the NPU"]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (10240, "10 KiB"), (312 << 20, "312 MiB"), (1500 << 20, "1.5 GiB")],
)
def test_sizes(number: int, text: str) -> None:
    assert size(number) == text


def test_the_page_shows_the_data_and_carries_all_of_it() -> None:
    html = run_page(document())
    page = Page(html)
    text = " ".join(" ".join(page.text).split())
    assert page.open == []
    for expected in (
        "train.py on a simulated Ascend910B3", "aten::lgamma.out", "print(loss)", "3 × a step", "312 MiB",
        "mat1, dimension 0: 16 to 96, 7 sizes", "c10d::allreduce_", "not pinned", "float32[4, 8]", "no bfloat16",
    ):  # fmt: skip
        assert expected in text, expected
    assert embedded(html) == document()


def test_the_page_needs_nothing_else() -> None:
    page = Page(run_page(document()))
    assert all(address.startswith(("#", "data:")) for address in page.addresses), page.addresses
    assert "http://" not in run_page(document()) and "https://" not in run_page(document())


def test_what_a_program_says_stays_text() -> None:
    evil = "</script><script>alert(1)</script>"
    error = {"rank": None, "type": "ValueError", "message": evil, "place": place(1, source=evil)}
    html = run_page(document(error=error))
    assert evil not in html and embedded(html)["error"]["message"] == evil


def test_the_page_of_a_run_without_anything() -> None:
    nothing = {"warm_up": 2, "looked_for": False, "last_new_step": 0, "changing": []}
    parts = ("processes", "operators", "fallbacks", "synchronizations", "copies", "collectives", "memory", "chips")
    html = run_page(document(**{part: [] for part in parts}, shapes=nothing, run={"steps": 0, "exit_code": 0}))
    assert "nothing ran on the NPU" in html


def test_a_browser_opens_it_without_an_error(tmp_path: Path) -> None:
    opened(run_page(document()), tmp_path)


def test_a_run_that_converted_code_shows_what_became_of_it(tmp_path: Path) -> None:
    converted = document(migration=migration())
    jsonschema.validate(converted, SCHEMA)
    html = run_page(converted)
    assert "torch.zeros(2, device=&#34;npu&#34;)" in html and 'data-table="sites"' in html
    assert run_summary(converted)[2:4] == migration_lines(migration())
    opened(html, tmp_path)
