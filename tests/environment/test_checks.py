"""Each check: a machine that has what it looks for, what it says, and what it says to do; none speaks on a good one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from environment.cases import CASES
from environment.machines import TOOLKIT, Faked, trained_on, without_npu
from environment.variants import Case, with_cann, with_package
from npuport import facts
from npuport.environment.checks.registry import all_checks, diagnose

# ND312: see test_extensions.py, its machines need a compiler. ND106: below.
ELSEWHERE = {"ND312", "ND106"}
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


def test_a_user_who_may_not_open_the_devices(tmp_path: Path) -> None:
    """Whoever runs the tests may open the files that stand for devices, so what the probe sees is changed."""
    outside = trained_on().running(groups=("ada",)).environment(tmp_path)
    assert [one.code for one in diagnose(outside)] == []
    for devices in (replace(outside.devices, unusable=("/dev/davinci0",)), replace(outside.devices, nodes=())):
        found = [one for one in diagnose(replace(outside, devices=devices)) if one.code == "ND106"]
        assert [str(one.seen) for one in found] == ["User ada is not in the group HwHiAiUser."]
        assert found[0].commands == ("sudo usermod -aG HwHiAiUser ada",)


def test_patch_releases_of_cann_belong_to_the_release_they_patch(tmp_path: Path) -> None:
    patched = with_package(
        "torch_npu", "2.7.1.post2", machine=with_package("torch", "2.7.1", machine=with_cann("8.5.1"))
    )
    assert "ND304" not in [one.code for one in diagnose(patched.environment(tmp_path))]


def test_a_package_of_operators_in_folders_of_other_names_is_not_called_missing(tmp_path: Path) -> None:
    later = trained_on().without(f"{TOOLKIT}/opp/built-in/op_impl")
    assert "ND206" not in [one.code for one in diagnose(later.environment(tmp_path))]
