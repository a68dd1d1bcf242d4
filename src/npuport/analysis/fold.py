"""Findings that say the same of many places and ask for no edit, as one finding that counts the places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from npuport.findings import Finding, Severity

_ONE_INSTALLATION = frozenset({"NP462", "NP702"})
"""Rules of milder kinds whose every place is settled at once: by a package, a build or an adapter that is installed."""


def fold(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """``findings`` with one for each message among those that ask for no edit, at the first place it was met.

    Its evidence names the others, ``places``, as "path:line"; nothing is left out. Errors are never folded, nor is what
    has a fix.
    """
    groups: dict[tuple[str, str], list[Finding]] = {}
    single: list[Finding] = []
    for finding in findings:
        if finding.fix is None and (finding.severity is Severity.INFO or finding.code in _ONE_INSTALLATION):
            groups.setdefault((finding.code, _sentence(finding)), []).append(finding)
        else:
            single.append(finding)
    folded = [*single, *(_joined(group) for group in groups.values())]
    return tuple(sorted(folded, key=_order))


def _sentence(finding: Finding) -> str:
    """What a finding says, less the name that it says it of."""
    return finding.message.removeprefix(str(finding.evidence.get("word", "")))


def _joined(group: list[Finding]) -> Finding:
    """The gravest of a group, and of those the first, with the places of the others."""
    first = min(group, key=lambda finding: (finding.severity.rank, *_order(finding)))
    others = sorted((finding for finding in group if finding is not first), key=_order)
    if not others:
        return first
    files = len({finding.location.path for finding in group})
    more = f"{len(others):,} more {'place' if len(others) == 1 else 'places'}"
    where = f"{more} in {files:,} files" if files > 1 else more
    places = [f"{finding.location.path}:{finding.location.line}" for finding in others]
    return replace(
        first,
        message=f"{first.message} (and at {where})",
        evidence={**first.evidence, "places": places},
    )


def _order(finding: Finding) -> tuple[str, int, int, int, str]:
    where = finding.location
    return where.path, where.cell or 0, where.line, where.column, finding.code
