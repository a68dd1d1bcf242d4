"""Choosing fixes for a text: each whole or not at all, none over another. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from npuport.findings import Applicability, Edit, Finding, Fix


@dataclass(frozen=True, slots=True)
class Selection:
    """Which findings are repaired, and by which edits (sorted, without overlap)."""

    edits: tuple[Edit, ...]
    chosen: tuple[Finding, ...]
    left: tuple[Finding, ...]  # no fix, a fix not trusted, or a fix that overlaps one before it


def choose(text: str, findings: Iterable[Finding], unsafe: bool) -> Selection:
    """Choose the fixes to apply: by position, the first wins; edits that several fixes share are made once.

    Raises:
        ValueError: for a fix whose edits lie outside ``text`` or overlap one another.
    """
    accepted: list[Edit] = []
    chosen: list[Finding] = []
    left: list[Finding] = []
    for finding in sorted(findings, key=_order):
        fix = finding.fix
        if fix is not None and _trusted(fix, unsafe) and _changes(text, fix) and _admit(accepted, fix):
            chosen.append(finding)
        else:
            left.append(finding)
    return Selection(tuple(accepted), tuple(sorted(chosen, key=_by_place)), tuple(sorted(left, key=_by_place)))


def origin(edits: Sequence[Edit], offset: int) -> int:
    """Where a character of ``apply(text, edits)`` was in ``text``: the start of the edit for text that one put in."""
    shift = 0  # new offset - old offset, after the edits passed so far
    for edit in edits:
        if offset < edit.start + shift:
            break
        if offset < edit.start + shift + len(edit.new):
            return edit.start
        shift += len(edit.new) - (edit.end - edit.start)
    return offset - shift


def overlap(one: Edit, other: Edit) -> bool:
    """Whether two edits cannot both be made: a shared character, an insertion inside, or two insertions at a place."""
    if one.start == one.end and other.start == other.end:
        return one.start == other.start
    return one.start < other.end and other.start < one.end


def _trusted(fix: Fix, unsafe: bool) -> bool:
    return fix.applicability is Applicability.SAFE or (unsafe and fix.applicability is Applicability.UNSAFE)


def _changes(text: str, fix: Fix) -> bool:
    """Whether the fix changes anything; also the place where a fix that cannot be right is refused."""
    edits = sorted(set(fix.edits))
    for edit in edits:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise ValueError(f"an edit at {edit.start}:{edit.end} of a text of {len(text)} characters")
    for before, after in pairwise(edits):
        if overlap(before, after):
            raise ValueError(f"two edits of one fix overlap at {after.start}")
    return any(text[edit.start : edit.end] != edit.new for edit in edits)


def _admit(accepted: list[Edit], fix: Fix) -> bool:
    """Add the edits of ``fix`` to the sorted list ``accepted`` unless one of them overlaps what is there."""
    new = [edit for edit in sorted(set(fix.edits)) if not _contains(accepted, edit)]
    if any(_overlaps_any(accepted, edit) for edit in new):
        return False
    for edit in new:
        bisect.insort(accepted, edit)
    return True


def _contains(accepted: list[Edit], edit: Edit) -> bool:
    index = bisect.bisect_left(accepted, edit)
    return index < len(accepted) and accepted[index] == edit


def _overlaps_any(accepted: list[Edit], edit: Edit) -> bool:
    index = bisect.bisect_left(accepted, edit)
    # Accepted edits are disjoint, so neighbours suffice; two before, since an insertion may sit at a start.
    return any(overlap(edit, other) for other in accepted[max(0, index - 2) : index + 2])


def _order(finding: Finding) -> tuple[tuple[Edit, ...], str]:
    """By the place of the fix; a total order, so that the result does not depend on the order of findings."""
    return tuple(sorted(finding.fix.edits)) if finding.fix else (), finding.code


def _by_place(finding: Finding) -> tuple[object, ...]:
    return finding.location.cell or 0, finding.location.line, finding.location.column, finding.code
