"""What a conversion did to one file, line by line, with the reason for each change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npuport.conversion.convert import Converted
from npuport.conversion.edits import origin
from npuport.findings import Applicability, Edit, Finding, Verdict
from npuport.source.edit import apply
from npuport.source.files import SourceFile
from npuport.source.text import LineIndex


@dataclass(frozen=True, slots=True)
class Reason:
    """The rule behind a change."""

    code: str
    name: str
    message: str
    applicability: Applicability
    verdict: Verdict | None = None  # where the fix rests on a claim


@dataclass(frozen=True, slots=True)
class Change:
    """Whole lines before and after. ``line`` is where they are in the original file, from 1."""

    path: str
    line: int
    before: str
    after: str
    reasons: tuple[Reason, ...]


def changes(
    current: SourceFile, converted: Converted, earlier: Sequence[Sequence[Edit]], original: SourceFile
) -> list[Change]:
    """The changes that turn ``current`` into ``converted``; ``earlier`` edits turned ``original`` into ``current``."""
    index = LineIndex(current.text)
    original_index = LineIndex(original.text)
    found = []
    for group in _by_lines(converted.edits, index):
        start, end = _whole_lines(group, index)
        shifted = [Edit(edit.start - start, edit.end - start, edit.new) for edit in group]
        before = current.text[start:end]
        place = start
        for edits in reversed(earlier):
            place = origin(edits, place)
        line = original_index.position(place)[0]
        found.append(Change(current.path, line, before, apply(before, shifted), _reasons(group, converted.applied)))
    return found


def _by_lines(edits: Sequence[Edit], index: LineIndex) -> Iterator[list[Edit]]:
    """Edits that share a line, together."""
    group: list[Edit] = []
    last = 0
    for edit in edits:
        if group and index.position(edit.start)[0] > last:
            yield group
            group = []
        group.append(edit)
        last = _last_line(edit, index)
    if group:
        yield group


def _last_line(edit: Edit, index: LineIndex) -> int:
    """The line of the last character replaced; for an insertion the line it is made in."""
    return index.position(max(edit.start, edit.end - 1))[0]


def _whole_lines(group: Sequence[Edit], index: LineIndex) -> tuple[int, int]:
    first = index.position(group[0].start)[0]
    last = max(_last_line(edit, index) for edit in group)
    end = index.starts[last] if last < len(index.starts) else len(index.text)
    if all(edit.start == edit.end == index.starts[first - 1] and edit.new.endswith("\n") for edit in group):
        end = index.starts[first - 1]  # new lines put in before this one, which itself stays as it is
    return index.starts[first - 1], end


def _reasons(group: Sequence[Edit], applied: Sequence[Finding]) -> tuple[Reason, ...]:
    made = set(group)
    reasons = {
        Reason(finding.code, finding.name, finding.message, finding.fix.applicability, finding.fix.verdict)
        for finding in applied
        if finding.fix and not made.isdisjoint(finding.fix.edits)
    }
    return tuple(sorted(reasons, key=lambda reason: (reason.code, reason.message)))
