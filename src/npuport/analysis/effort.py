"""How much work a port takes, in lines: done by npuport, to be read, or to be done by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from npuport.findings import Applicability, Finding, Severity


@dataclass(frozen=True, slots=True)
class Effort:
    """Lines by the work they take; a line counts once, under the hardest of its findings."""

    automatic: int  # every finding on the line has a safe fix
    to_read: int  # an unsafe fix, or something that may differ and needs a decision
    by_hand: int  # will fail, and no fix can be applied
    files: int  # files with at least one such line

    @property
    def blocked(self) -> bool:
        """Whether something has to be written by hand before the port can run."""
        return self.by_hand > 0


def effort(findings: Iterable[Finding]) -> Effort:
    """The effort for what must change or may differ; advice and information take none."""
    by_file = effort_by_file(findings)
    automatic, to_read, by_hand = (sum(lines[grade] for lines in by_file.values()) for grade in range(3))
    return Effort(automatic, to_read, by_hand, len(by_file))


def effort_by_file(findings: Iterable[Finding]) -> dict[str, tuple[int, int, int]]:
    """Lines (automatic, to read, by hand) of each file that takes any work."""
    hardest: dict[tuple[str, int | None, int], int] = {}
    for finding in findings:
        grade = _grade(finding)
        if grade is not None:
            where = (finding.location.path, finding.location.cell, finding.location.line)
            hardest[where] = max(grade, hardest.get(where, 0))
    counts: dict[str, list[int]] = {}
    for (path, _, _), grade in hardest.items():
        counts.setdefault(path, [0, 0, 0])[grade] += 1
    return {path: (lines[0], lines[1], lines[2]) for path, lines in counts.items()}


def _grade(finding: Finding) -> int | None:
    applicability = finding.fix.applicability if finding.fix else Applicability.MANUAL
    if applicability is Applicability.SAFE:
        return 0
    if finding.severity not in (Severity.ERROR, Severity.WARNING):
        return None
    if applicability is Applicability.UNSAFE or finding.severity is Severity.WARNING:
        return 1
    return 2
