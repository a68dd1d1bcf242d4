"""``# npuport: ignore[NP101] reason`` on the line of a finding silences it; one that silences nothing is a finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from npuport.findings import Applicability, Edit, Finding, Fix, Location, Severity
from npuport.source.files import SourceFile
from npuport.source.text import STRING_OR_COMMENT, LineIndex

COMMENT = "npuport: ignore["
"""What every such comment holds."""
_COMMENT = re.compile(r"#\s*npuport:\s*ignore\[([A-Z0-9,\s]+)\][^\r\n]*")


def suppress(source: SourceFile, findings: Iterable[Finding]) -> list[Finding]:
    """``findings`` without the suppressed ones, plus a finding for each suppression that is not needed."""
    found = list(findings)
    if COMMENT not in source.text:
        return found
    kept: list[Finding] = list(found)
    index = LineIndex(source.text)
    for match in _comments(source.text):
        line, column = index.position(match.start())
        codes = {code.strip() for code in match.group(1).split(",") if code.strip()}
        silenced = [f for f in found if f.code in codes and f.location.line <= line <= f.location.end_line]
        kept = [finding for finding in kept if finding not in silenced]
        unused = codes - {finding.code for finding in silenced}
        if unused:
            kept.append(_unused(source, match, (line, column), sorted(unused), whole=not silenced))
    return kept


def _comments(text: str) -> Iterator[re.Match[str]]:
    """The suppressions in comments; a string may hold the same words."""
    for token in STRING_OR_COMMENT.finditer(text):
        match = _COMMENT.search(text, *token.span()) if token.lastgroup == "comment" else None
        if match is not None:
            yield match


def _unused(source: SourceFile, match: re.Match[str], at: tuple[int, int], codes: list[str], whole: bool) -> Finding:
    line, column = at
    start = match.start()
    while whole and start > 0 and source.text[start - 1] in " \t":
        start -= 1
    return Finding(
        code="NP990",
        name="unused-suppression",
        severity=Severity.WARNING,
        location=Location(source.path, line, column, line, column + len(match.group())),
        message=f"nothing on this line needs ignore[{', '.join(codes)}]",
        fix=Fix((Edit(start, match.end(), ""),), Applicability.SAFE, "remove it") if whole else None,
    )
