"""Findings as GitHub Actions workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

from npuport.findings import Finding, Severity

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice", Severity.INFO: "notice"}


def annotation(finding: Finding, root: str = "") -> str:
    """One line; ``root`` is the analysed directory as seen from the repository's, with a slash at its end, or ""."""
    where = finding.location
    places = {"file": f"{root}{where.path}", "line": where.line, "col": where.column, "endLine": where.end_line}
    if where.end_line == where.line:
        places["endColumn"] = where.end_column
    places["title"] = f"{finding.code} {finding.name}"
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in places.items())
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(finding.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
