"""The first contact, exactly as it is printed."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from samples import finding

from npuport.findings import Applicability, Finding, Severity
from npuport.report.groups import Group, group_of
from npuport.report.summary import SummaryFacts, summary

FACTS = SummaryFacts(
    "demo", {"yaml": 2, "python": 15, "notebook": 1, "shell": 1, "text": 3}, "2.13.0", "Ascend910B3", 0.42, 31, 5, 0
)


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "en")


def shown(*findings: Finding, facts: SummaryFacts = FACTS, width: int = 100) -> list[str]:
    return [line.plain.rstrip() for line in summary(facts, findings, width)]


def test_groups() -> None:
    assert group_of(finding()) is Group.MUST_CHANGE
    assert group_of(finding(level=Applicability.UNSAFE)) is Group.MUST_CHANGE
    assert group_of(finding(level=Applicability.MANUAL)) is Group.WILL_FAIL
    assert group_of(finding(new=None)) is Group.WILL_FAIL
    assert group_of(finding(severity=Severity.WARNING)) is Group.MAY_DIFFER
    assert group_of(finding(severity=Severity.ADVICE)) is Group.FASTER_AS
    assert group_of(finding(severity=Severity.INFO)) is Group.WORTH_KNOWING
    assert group_of(finding(severity=Severity.INFO, evidence={"library": "apex"})) is Group.LIBRARIES


def test_the_whole_summary() -> None:
    findings = [
        finding(new=None, name="cuda-graph"),
        *[finding()] * 3,
        finding(level=Applicability.UNSAFE, name="nccl-backend"),
        finding(severity=Severity.INFO, evidence={"library": "apex"}),
    ]
    assert shown(*findings) == [
        "demo · 15 Python files, 3 text, 2 YAML, 1 notebook, 1 other · torch 2.13.0, Ascend910B3        0.4 s",
        "",
        "  will fail       1   cuda-graph                                             pkg/train.py:4",
        "  must change     4   cuda-device-string 3, nccl-backend; 3 with a safe fix  pkg/train.py:4",
        "  libraries       1   apex                                                   pkg/train.py:4",
        "",
        "Effort: 31 lines automatic, 5 to read, 0 by hand. No blockers.",
    ]


def test_nothing_to_report() -> None:
    assert "nothing to report" in shown()[2]


def test_a_narrow_terminal_gets_the_places_on_their_own_line() -> None:
    lines = shown(*[finding()] * 2, width=60)
    assert lines[2].endswith("all with a safe fix")
    assert lines[3].strip() == "pkg/train.py:4"


def test_large_counts_stay_apart_from_their_labels() -> None:
    assert "  must change         2   cuda-device-string 2" in shown(*[finding()] * 2, *[finding(new=None)] * 1500)[3]


def test_blockers_are_not_denied() -> None:
    facts = SummaryFacts("demo", {"python": 1}, "2.13.0", "Ascend910B3", 0.1, 0, 0, 2)
    assert shown(finding(new=None), facts=facts)[-1] == "Effort: 0 lines automatic, 0 to read, 2 by hand."


def test_chinese_columns_line_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUPORT_LANG", "zh")
    lines = shown(finding(new=None), finding(severity=Severity.WARNING))
    assert lines[0].startswith("demo · 15 个 Python 文件")
    counts = [cell_len(line[: line.index("1   cuda")]) for line in lines[2:4]]
    assert counts[0] == counts[1]
    assert "无法运行" in lines[2]
    assert lines[-1].startswith("工作量：自动修改 31 行")
