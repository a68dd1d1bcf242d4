"""Findings as JSON, with a versioned schema (schemas/npuport-analysis-1.json)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from npuport import __version__
from npuport.findings import Finding, Severity, Verdict
from npuport.report.groups import group_of

SCHEMA = "npuport-analysis/1"
SCHEMA_FILE = Path(__file__).parent / "schemas" / "npuport-analysis-1.json"


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding. Offsets of edits count characters of the decoded file; lines and columns count from 1."""
    where, basis, fix = finding.location, finding.basis, finding.fix
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "group": group_of(finding).value,
        "path": where.path,
        "line": where.line,
        "column": where.column,
        "end_line": where.end_line,
        "end_column": where.end_column,
        "cell": where.cell,
        "message": finding.message,
        "evidence": {key: _plain(value) for key, value in finding.evidence.items()},
        "basis": {"source": basis.source, "version": basis.version, "certainty": basis.certainty} if basis else None,
        "fix": {
            "applicability": fix.applicability.value,
            "title": fix.title,
            "edits": [{"start": edit.start, "end": edit.end, "new": edit.new} for edit in fix.edits],
            **({"proof": verdict_json(fix.verdict)} if fix.verdict is not None else {}),
        }
        if fix
        else None,
    }


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict on a fix. Errors are relative to the largest value, by dtype."""
    return {
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "runs": verdict.runs,
        "difference": dict(verdict.difference),
        "original": dict(verdict.original),
        "notes": list(verdict.notes),
    }


def _plain(value: Any) -> Any:
    """Evidence as JSON values; anything else as its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(part) for part in value), key=str)
    return str(value)


def analysis_json(
    *,
    root: str,
    findings: Sequence[Finding],
    files: Mapping[str, int],
    settings: Mapping[str, str],
    effort: Mapping[str, int],
    skipped: Sequence[Mapping[str, Any]] = (),
    failures: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The whole analysis as one JSON document; the same input gives the same bytes."""
    severities = Counter(finding.severity for finding in findings)
    document = {
        "schema": SCHEMA,
        "npuport": __version__,
        "root": root,
        "settings": dict(settings),
        "files": dict(sorted(files.items())),
        "summary": {severity.value: severities[severity] for severity in Severity},
        "effort": dict(effort),
        "findings": [finding_json(finding) for finding in findings],
        "skipped": [dict(one) for one in skipped],
        "failures": [dict(one) for one in failures],
    }
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"
