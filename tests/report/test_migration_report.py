"""The report of a migration at import time: its lines in the terminal, its page, its schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from pages import Page, embedded, opened
from run_samples import migration, migration_document

import npuport
from npuport.report.migration_page import migration_page
from npuport.report.migration_summary import migration_summary

SCHEMA = json.loads((Path(npuport.__file__).parent / "report/schemas/npuport-migration-1.json").read_text())


def test_the_sample_follows_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(migration_document(), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(migration_document(run={"exit_code": "0"}), SCHEMA)


def test_the_summary() -> None:
    assert migration_summary(migration_document(), ["a.html"]) == [
        "CUDA code: 5 lines in 1 file: 1 the same, 1 decided at run time, 1 without effect, 1 left as written, "
        "1 refused (train.py:9)",
        "stand-ins: flash_attn · libraries: 1 line asked for CUDA and got the NPU",
        "report: a.html",
    ]


def test_the_summary_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "zh")
    first, *_ = migration_summary(migration_document())
    assert first == "CUDA 代码：1 个文件中的 5 行：1 相同, 1 运行时决定, 1 无效果, 1 保持原样, 1 被拒绝 (train.py:9)"


def test_runs_without_anything_to_tell_say_so() -> None:
    nothing = migration(modules=[], sites=[], stand_ins=[], libraries=[])
    assert migration_summary(migration_document(migration=nothing)) == ["no Python script of your own ran"]
    assert migration_summary(migration_document(migration=nothing, run={"npu": False})) == [
        "nothing was converted: no NPU was wanted for this run"
    ]
    clean = migration(sites=[], stand_ins=[], libraries=[])
    assert migration_summary(migration_document(migration=clean, run={"exit_code": 3})) == [
        "the run ended with exit code 3",
        "no CUDA code in 2 modules",
    ]


def test_the_page_shows_the_data_and_carries_all_of_it() -> None:
    html = migration_page(migration_document(run={"exit_code": 9}))
    page = Page(html)
    text = " ".join(" ".join(page.text).split())
    assert page.open == []
    for expected in (
        "train.py --lr 1", 'torch.zeros(2, device="npu")', "NP101", "decided at run time", "exit code 9", "flash_attn",
        "/lib/peft/a.py:4", "would not parse", "ASCEND_RT_VISIBLE_DEVICES=0", "2 processes",
    ):  # fmt: skip
        assert expected in text, expected
    assert embedded(html)["migration"] == migration()
    assert all(address.startswith(("#", "data:")) for address in page.addresses), page.addresses


def test_what_a_program_says_stays_text() -> None:
    evil = "</script><script>alert(1)</script>"
    html = migration_page(migration_document(migration=migration(stand_ins=[evil], variables=[evil])))
    assert evil not in html and embedded(html)["migration"]["stand_ins"] == [evil]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_browser_opens_it_without_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    monkeypatch.setenv("NPUPORT_LANG", language)
    opened(migration_page(migration_document()), tmp_path)


def test_the_page_of_a_run_that_converted_nothing() -> None:
    nothing = migration(modules=[], sites=[], stand_ins=[], libraries=[], processes=[], variables=[])
    html = migration_page(migration_document(migration=nothing, run={"npu": False}))
    assert "no NPU was wanted" in html and "torch_npu is not installed" in html
