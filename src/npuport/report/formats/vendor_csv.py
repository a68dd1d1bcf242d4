"""CSV files with the names and columns of the vendor's migration tool, for those whose process reads them.

The columns are those of msFmkTransplt's reports: File, Start Line, End Line, and what stands on the lines. Its
change_list.csv names no rule and shows no text; both are columns of their own here, after its own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from npuport.findings import Applicability, Finding, Severity
from npuport.report.groups import Group, fix_level, group_of

_SUPPORT = ("File", "Start Line", "End Line", "OP", "Tips", "Rule")


def vendor_csv(findings: Sequence[Finding]) -> dict[str, bytes]:
    """Contents by file name, UTF-8 with a byte order mark, which spreadsheets need to read Chinese paths."""
    changes = [one for one in findings if fix_level(one) in (Applicability.SAFE, Applicability.UNSAFE)]
    left = [one for one in findings if one not in changes]
    return {
        "change_list.csv": _table(
            ("File", "Start Line", "End Line", "Operation Type", "Message", "Rule", "Applicability"),
            (
                (*_place(one), _operation(one), one.message, one.code, one.fix.applicability.value)
                for one in changes
                if one.fix
            ),
        ),
        "unsupported_api.csv": _support(one for one in left if one.severity is Severity.ERROR),
        "unknown_api.csv": _support(one for one in left if one.severity is Severity.WARNING and not _is_known(one)),
        "api_precision_advice.csv": _support(
            one for one in left if group_of(one) is Group.MAY_DIFFER and _is_known(one)
        ),
        "api_performance_advice.csv": _support(one for one in left if group_of(one) is Group.FASTER_AS),
    }


def _is_known(finding: Finding) -> bool:
    """Whether a fact stands behind the finding."""
    return finding.basis is not None


def _support(findings: Iterable[Finding]) -> bytes:
    return _table(_SUPPORT, ((*_place(one), _subject(one), one.message, one.code) for one in findings))


def _place(finding: Finding) -> tuple[str, int, int]:
    where = finding.location
    return where.path, where.line, where.end_line


def _subject(finding: Finding) -> str:
    for key in ("symbol", "name", "library", "variable", "value", "operator"):
        if key in finding.evidence:
            return str(finding.evidence[key])
    return finding.name


def _operation(finding: Finding) -> str:
    edits = finding.fix.edits if finding.fix else ()
    if all(edit.start == edit.end for edit in edits):
        return "INSERT"
    return "DELETE" if all(not edit.new for edit in edits) else "MODIFY"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(head)
    writer.writerows([_inert(str(value)) for value in row] for row in rows)
    return text.getvalue().encode("utf-8-sig", "backslashreplace")


def _inert(text: str) -> str:
    """A value that a spreadsheet takes for text and not for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
