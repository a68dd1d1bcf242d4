"""Fixes are applied whole or not at all, without overlap, the first by position winning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuport.conversion.edits import choose, origin, overlap
from npuport.findings import Applicability, Edit, Finding, Fix, Location, Severity
from npuport.source.edit import apply

TEXT = "0123456789abcdefghij"


def finding(*edits: Edit, level: Applicability = Applicability.SAFE, code: str = "NP101") -> Finding:
    where = Location("a.py", 1, min((edit.start for edit in edits), default=0) + 1, 1, 20)
    return Finding(code, "bad", Severity.ERROR, where, "m", fix=Fix(edits, level) if edits else None)


edits_in_text = st.tuples(st.integers(0, len(TEXT)), st.integers(0, 4), st.sampled_from(["", "X", "YY", "ZZZZZZ"])).map(
    lambda parts: Edit(parts[0], min(len(TEXT), parts[0] + parts[1]), parts[2])
)


def disjoint(edits: list[Edit]) -> bool:
    distinct = sorted(set(edits))
    return not any(overlap(a, b) for i, a in enumerate(distinct) for b in distinct[i + 1 :])


fixes = st.lists(edits_in_text, min_size=1, max_size=3).filter(disjoint)
many_findings = st.lists(fixes.map(lambda edits: finding(*edits)), max_size=8)


@given(many_findings)
def test_every_fix_is_whole_or_absent_and_nothing_overlaps(findings: list[Finding]) -> None:
    selection = choose(TEXT, findings, unsafe=False)
    accepted = set(selection.edits)
    assert disjoint(list(selection.edits))
    assert list(selection.edits) == sorted(accepted)
    assert accepted == {edit for one in selection.chosen if one.fix for edit in one.fix.edits}
    assert len(selection.chosen) + len(selection.left) == len(findings)


@given(many_findings)
def test_a_fix_left_out_changes_nothing_or_meets_one_that_was_taken(findings: list[Finding]) -> None:
    selection = choose(TEXT, findings, unsafe=False)
    for left in selection.left:
        assert left.fix is not None
        idle = all(TEXT[edit.start : edit.end] == edit.new for edit in left.fix.edits)
        blocked = any(overlap(mine, other) for mine in left.fix.edits for other in selection.edits if mine != other)
        assert idle or blocked


@given(many_findings)
def test_the_result_does_not_depend_on_the_order_of_findings(findings: list[Finding]) -> None:
    assert set(choose(TEXT, findings, False).edits) == set(choose(TEXT, findings[::-1], False).edits)


@given(many_findings)
def test_apply_changes_the_edited_ranges_and_nothing_else(findings: list[Finding]) -> None:
    edits = choose(TEXT, findings, unsafe=False).edits
    new = apply(TEXT, edits)
    expected = TEXT
    for edit in reversed(edits):
        expected = expected[: edit.start] + edit.new + expected[edit.end :]
    assert new == expected


@given(many_findings)
def test_origin_leads_every_kept_character_back(findings: list[Finding]) -> None:
    edits = choose(TEXT, findings, unsafe=False).edits
    new = apply(TEXT, edits)
    kept = [place for place in range(len(TEXT)) if not any(edit.start <= place < edit.end for edit in edits)]
    shown = [place for place in range(len(new)) if new[place] not in "XYZ"]
    assert [origin(edits, place) for place in shown] == kept


def test_origin_of_new_text_is_where_its_edit_starts() -> None:
    assert [origin([Edit(2, 4, "XYZ")], place) for place in range(6)] == [0, 1, 2, 2, 2, 4]


def test_fixes_that_share_an_edit_are_both_made() -> None:
    shared = Edit(0, 0, "import torch_npu\n")
    both = [finding(shared, Edit(3, 4, "X")), finding(shared, Edit(7, 8, "Y"))]
    selection = choose(TEXT, both, unsafe=False)
    assert len(selection.chosen) == 2
    assert apply(TEXT, selection.edits) == "import torch_npu\n012X456Y89abcdefghij"


def test_a_fix_is_left_whole_when_one_of_its_edits_overlaps() -> None:
    first, second = finding(Edit(2, 6, "X")), finding(Edit(4, 5, "Y"), Edit(10, 11, "Z"))
    selection = choose(TEXT, [second, first], unsafe=False)
    assert selection.chosen == (first,)
    assert selection.left == (second,)
    assert apply(TEXT, selection.edits) == "01X6789abcdefghij"


def test_an_insertion_beside_a_replacement_is_no_overlap() -> None:
    selection = choose(TEXT, [finding(Edit(2, 2, "<")), finding(Edit(2, 4, "X")), finding(Edit(4, 4, ">"))], False)
    assert apply(TEXT, selection.edits) == "01<X>456789abcdefghij"


def test_two_different_insertions_at_one_place_wait_for_each_other() -> None:
    selection = choose(TEXT, [finding(Edit(2, 2, "A")), finding(Edit(2, 2, "B"), code="NP102")], False)
    assert apply(TEXT, selection.edits) == "01A23456789abcdefghij"
    assert [one.code for one in selection.left] == ["NP102"]


@pytest.mark.parametrize(
    ("level", "unsafe", "applied"),
    [
        (Applicability.SAFE, False, True),
        (Applicability.UNSAFE, False, False),
        (Applicability.UNSAFE, True, True),
        (Applicability.MANUAL, True, False),
    ],
)
def test_trust(level: Applicability, unsafe: bool, applied: bool) -> None:
    assert bool(choose(TEXT, [finding(Edit(0, 1, "X"), level=level)], unsafe).chosen) is applied


def test_a_finding_without_fix_or_with_an_idle_fix_stays() -> None:
    findings = [finding(), finding(Edit(0, 1, "0"))]
    assert choose(TEXT, findings, unsafe=True).chosen == ()


@pytest.mark.parametrize(
    "edits", [(Edit(-1, 2, ""),), (Edit(3, 2, ""),), (Edit(0, 99, ""),), (Edit(0, 3, "a"), Edit(2, 4, "b"))]
)
def test_an_impossible_fix_is_refused(edits: tuple[Edit, ...]) -> None:
    with pytest.raises(ValueError, match="edit"):
        choose(TEXT, [finding(*edits)], unsafe=False)
