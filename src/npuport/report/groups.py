"""The few questions a reader has first, as groups of findings."""

from __future__ import annotations

import enum

from npuport.findings import Applicability, Finding, Severity


class Group(enum.Enum):
    """What a finding means for the port, in the order in which a reader should care."""

    WILL_FAIL = "will fail"
    MUST_CHANGE = "must change"
    MAY_DIFFER = "may differ"
    FASTER_AS = "faster as"
    LIBRARIES = "libraries"
    WORTH_KNOWING = "worth knowing"


_OF_SEVERITY = {
    Severity.ERROR: Group.WILL_FAIL,
    Severity.WARNING: Group.MAY_DIFFER,
    Severity.ADVICE: Group.FASTER_AS,
    Severity.INFO: Group.WORTH_KNOWING,
}


def group_of(finding: Finding) -> Group:
    """Errors that npuport can repair must change, others will fail. Libraries stand apart: one installs them."""
    if "library" in finding.evidence:
        return Group.LIBRARIES
    if finding.severity is Severity.ERROR and fix_level(finding) in (Applicability.SAFE, Applicability.UNSAFE):
        return Group.MUST_CHANGE
    return _OF_SEVERITY[finding.severity]


def fix_level(finding: Finding) -> Applicability | None:
    """How far the fix may be trusted; None without a fix."""
    return finding.fix.applicability if finding.fix else None
