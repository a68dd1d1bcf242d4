"""Findings as SARIF 2.1.0 (OASIS), which code scanning services show beside the code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from npuport import __version__
from npuport.findings import Edit, Finding, Severity
from npuport.report.fingerprints import fingerprints
from npuport.report.groups import fix_level, group_of
from npuport.source.files import SourceFile
from npuport.source.text import LineIndex

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note", Severity.INFO: "none"}
# SARIF reserves level "none" for results that are no problem, and its kind says so.
_KINDS = {Severity.INFO: "informational"}


@dataclass(frozen=True, slots=True)
class RuleHelp:
    """What is said about a rule: one sentence, and the whole of its document in Markdown."""

    name: str
    summary: str
    markdown: str


def sarif(
    findings: Sequence[Finding],
    sources: Mapping[str, SourceFile],
    rules: Mapping[str, RuleHelp],
    unread: Sequence[tuple[str, str]] = (),
) -> str:
    """One SARIF log with one run. ``rules`` by code; ``unread``: path and reason of files that could not be read."""
    codes = sorted({finding.code for finding in findings})
    prints = fingerprints(findings, sources)
    lines = _Lines(sources)
    run = {
        "tool": {
            "driver": {
                "name": "npuport",
                "semanticVersion": __version__,
                "rules": [_rule(code, findings, rules.get(code)) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not unread,
                "toolExecutionNotifications": [_notification(path, reason) for path, reason in unread],
            }
        ],
        "results": [
            _result(finding, codes.index(finding.code), lines, mark)
            for finding, mark in zip(findings, prints, strict=True)
        ],
    }
    return json.dumps({"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=True) + "\n"


def _rule(code: str, findings: Sequence[Finding], help_: RuleHelp | None) -> dict[str, Any]:
    first = next(finding for finding in findings if finding.code == code)
    rule: dict[str, Any] = {
        "id": code,
        "name": "".join(word.capitalize() for word in first.name.split("-")),
        "defaultConfiguration": {"level": _LEVELS[first.severity]},
    }
    if help_ is not None:
        rule["shortDescription"] = {"text": help_.summary}
        rule["help"] = {"text": help_.summary, "markdown": help_.markdown}
    return rule


def _result(finding: Finding, index: int, lines: _Lines, mark: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "kind": _KINDS.get(finding.severity, "fail"),
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(finding), "region": _region(finding)}}],
        "partialFingerprints": {"npuport/v1": mark},
        "properties": {"group": group_of(finding).value},
    }
    if finding.basis:
        result["properties"]["basis"] = str(finding.basis)
    level = fix_level(finding)
    # A fix inside a notebook's cell is placed in the text of the cell, which SARIF cannot say.
    if finding.fix and finding.fix.edits and level is not None and finding.location.cell is None:
        replacements = [lines.replacement(finding.location.path, edit) for edit in finding.fix.edits]
        if all(replacements):
            changes = [{"artifactLocation": _artifact(finding), "replacements": replacements}]
            title = finding.fix.title or f"{level.value} fix"
            result["fixes"] = [{"description": {"text": title}, "artifactChanges": changes}]
            result["properties"]["applicability"] = level.value
    return result


def _artifact(finding: Finding) -> dict[str, str]:
    return {"uri": quote(finding.location.path, errors="surrogateescape"), "uriBaseId": "SRCROOT"}


def _region(finding: Finding) -> dict[str, int]:
    where = finding.location
    region = {"startLine": where.line, "startColumn": where.column, "endLine": where.end_line}
    if where.end_line > where.line or where.end_column > where.column:
        region["endColumn"] = where.end_column
    return region


def _notification(path: str, reason: str) -> dict[str, Any]:
    location = {"physicalLocation": {"artifactLocation": {"uri": quote(path, errors="surrogateescape")}}}
    return {"level": "error", "message": {"text": f"{path} was not read: {reason}"}, "locations": [location]}


class _Lines:
    """Positions in the files' texts."""

    def __init__(self, sources: Mapping[str, SourceFile]) -> None:
        self._sources = sources
        self._indexes: dict[str, LineIndex] = {}

    def replacement(self, path: str, edit: Edit) -> dict[str, Any] | None:
        source = self._sources.get(path)
        if source is None:
            return None
        index = self._indexes.setdefault(path, LineIndex(source.text))
        (line, column), (end_line, end_column) = index.position(edit.start), index.position(edit.end)
        region = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
        return {"deletedRegion": region, "insertedContent": {"text": edit.new}}
