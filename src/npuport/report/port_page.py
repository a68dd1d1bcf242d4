"""The whole port as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npuport import __version__
from npuport.findings import Finding
from npuport.report.groups import Group, fix_level, group_of
from npuport.report.language import language, translate
from npuport.report.pages import template
from npuport.report.source_lines import repair, source_line
from npuport.source.files import SourceFile

_FILES_SHOWN = 15
_TONES = {Group.WILL_FAIL: "bad", Group.MUST_CHANGE: "warn", Group.MAY_DIFFER: "warn", Group.LIBRARIES: "warn"}
_FIXES = ("safe fix", "unsafe fix", "manual fix", "no fix")


@dataclass(frozen=True, slots=True)
class Work:
    """Lines by the work they take."""

    automatic: int
    to_read: int
    by_hand: int


def port_page(
    name: str,
    about: str,
    findings: Sequence[Finding],
    sources: Mapping[str, SourceFile],
    work_by_file: Mapping[str, tuple[int, int, int]],
) -> str:
    """The page, in the user's language. ``about``: one line on what was analysed, and for what."""
    groups = Counter(group_of(finding) for finding in findings)
    rules = Counter((finding.code, finding.name) for finding in findings)
    files = sorted(work_by_file.items(), key=lambda item: (-item[1][2], -item[1][1], -item[1][0], item[0]))
    # "<" would let a string of the document end the element that holds it.
    embedded = json.dumps(_data(findings, sources), ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return template("port.html.j2").render(
        name=name,
        about=about,
        tiles=[_tile(group, findings) for group in Group if groups[group] and group is not Group.WORTH_KNOWING],
        groups=[(group.value, groups[group]) for group in Group if groups[group]],
        fixes=[fix for fix in _FIXES if any(_fix(finding) == fix for finding in findings)],
        rules=[(code, rule, count) for (code, rule), count in sorted(rules.items())],
        files=files,
        most=_FILES_SHOWN,
        work=Work(*(sum(lines[place] for lines in work_by_file.values()) for place in range(3))),
        embedded=embedded,
        version=__version__,
        t=translate,
        language=language(),
    )


def _tile(group: Group, findings: Sequence[Finding]) -> dict[str, Any]:
    names = Counter(
        str(finding.evidence.get("library", finding.name)) for finding in findings if group_of(finding) is group
    )
    most = ", ".join(name for name, _ in names.most_common(3))
    return {"group": group.value, "count": sum(names.values()), "detail": most, "tone": _TONES.get(group, "good")}


def _fix(finding: Finding) -> str:
    level = fix_level(finding)
    return f"{level.value} fix" if level is not None else "no fix"


def _data(findings: Sequence[Finding], sources: Mapping[str, SourceFile]) -> dict[str, Any]:
    paths = {path: place for place, path in enumerate(dict.fromkeys(finding.location.path for finding in findings))}
    words = [*(group.value for group in Group), *_FIXES]
    return {
        "files": [path.encode("utf-8", "backslashreplace").decode() for path in paths],
        "rules": {finding.code: {"name": finding.name} for finding in findings},
        "words": {word: translate(word) for word in words},
        "findings": [_finding(finding, paths[finding.location.path], sources) for finding in findings],
    }


def _finding(finding: Finding, file: int, sources: Mapping[str, SourceFile]) -> dict[str, Any]:
    source = sources.get(finding.location.path)
    repaired = repair(finding, source) if source else None
    after = [*repaired.here, *(line for _, line in repaired.elsewhere)] if repaired else []
    return {
        "file": file,
        "line": finding.location.line,
        "cell": finding.location.cell,
        "code": finding.code,
        "group": group_of(finding).value,
        "fix": _fix(finding),
        "message": finding.message,
        "basis": str(finding.basis) if finding.basis else "",
        "before": source_line(finding, source) if source else "",
        "after": after,
    }
