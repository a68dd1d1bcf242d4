"""Each check: a machine that has what it looks for, what it says, and what it says to do; none speaks on a good one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from environment.cases import CASES, Case
from environment.machines import Faked, trained_on, without_npu
from npuport import facts
from npuport.environment.checks.registry import all_checks, diagnose

# Their machines need a compiler: see test_extensions.py.
ELSEWHERE = {"ND312"}
# Only lists of requirements have it: see test_requirements.py.
OF_LISTS = {"ND325"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_check_says_what_it_sees_and_what_repairs_it(case: Case, tmp_path: Path) -> None:
    found = [one for one in diagnose(case.machine.environment(tmp_path)) if one.code == case.code]
    assert found, [str(one.seen) for one in diagnose(case.machine.environment(tmp_path))]
    assert any(case.sees in str(one.seen) for one in found), [str(one.seen) for one in found]
    repairs = ["\n".join([str(one.fix), *one.commands]) for one in found]
    assert any(case.fixes in repair for repair in repairs), repairs


def test_nothing_is_wrong_with_a_machine_that_trains(tmp_path: Path) -> None:
    assert _said(trained_on(), tmp_path) == []


def test_a_laptop_hears_that_it_is_one_and_nothing_else(tmp_path: Path) -> None:
    assert [one.split()[0] for one in _said(without_npu(), tmp_path)] == ["ND100"]


def test_every_check_is_in_the_table_and_has_a_case() -> None:
    listed = {entry.code for entry in facts.all_environment_checks()}
    assert set(all_checks()) == listed - OF_LISTS
    assert {case.code for case in CASES} == listed - ELSEWHERE - OF_LISTS


def _said(machine: Faked, root: Path) -> Sequence[str]:
    return [f"{one.code} {one.seen}" for one in diagnose(machine.environment(root))]


def test_the_page_lists_every_check() -> None:
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    for entry in facts.all_environment_checks():
        assert f"| {entry.code} | {entry.name} |" in page
