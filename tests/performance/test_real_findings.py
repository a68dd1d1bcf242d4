"""What a real job's profiles are known to hold is found in them: an AlexNet on eight NPUs, rank 0."""

from __future__ import annotations

import pytest
from real_profiles import ALEXNET, needs_profiles

from npuport.performance.analysis import RankAnalysis, analyse, overlapping, together
from npuport.performance.findings.base import PerformanceFinding

pytestmark = needs_profiles


def analysed(folder: str) -> RankAnalysis:
    (rank,) = analyse([ALEXNET / folder])
    return rank


def named(rank: RankAnalysis, code: str) -> list[PerformanceFinding]:
    return [one for one in rank.findings if one.code == code]


@pytest.fixture(scope="module")
def level1() -> RankAnalysis:
    return analysed("text_level1_rank0_ascend_pt")


def test_the_reading_back_that_blocks_the_host(level1: RankAnalysis) -> None:
    """One aten::item waits 91.96 ms of a step of 156: Tensor.__format__ in a meter that main.py prints."""
    finding = next(one for one in level1.findings[:2] if one.code == "NT101")
    assert finding.line.endswith("main.py:485")
    assert finding.details["operator"] == "aten::item"
    assert round(finding.details["longest_ms"], 2) == 91.96
    assert finding.details["callers"][-2:] == ["main.py:373", "main.py:282"]
    assert finding.gain_ns <= finding.cost_ns


def test_findings_stay_below_what_they_explain(level1: RankAnalysis) -> None:
    for finding in level1.findings:
        assert 0 <= finding.gain_ns <= finding.cost_ns <= level1.step_ns
    assert together(level1.findings, 1) <= level1.step_ns
    assert (0, 1) in overlapping(level1.findings)  # what aten::item waits for is another rank


def test_compilations(level1: RankAnalysis) -> None:
    (finding,) = named(level1, "NT102")
    assert finding.details["calls"] == 19
    assert round(finding.cost_ns / 1e6, 2) == 14.05
    assert len(finding.events) == 19


def test_moving_and_waiting(level1: RankAnalysis) -> None:
    (finding,) = named(level1, "NT201")
    assert round(finding.details["transmit_ms"], 1) == 4.1
    assert round(finding.details["wait_ms"], 1) == 101.8


def test_level_0_has_no_alarm_about_what_it_did_not_record() -> None:
    rank = analysed("text_level0_rank0_ascend_pt")
    assert rank.profile.kernels["state"].null_count() == rank.profile.kernels.height
    assert "NT102" not in {one.code for one in rank.findings}
    said = " ".join(f"{one.name} {one.seen} {one.fix}" for one in rank.findings)
    assert "dynamic" not in said and "compil" not in said
