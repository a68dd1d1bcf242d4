"""The record of a conversion: for people (npuport-changes.md), for programs (.json), and for undoing (a patch)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from npuport import __version__
from npuport.conversion.changes import Change
from npuport.conversion.rounds import Conversion, ConvertedFile
from npuport.findings import Finding, Severity
from npuport.report.json_report import finding_json, verdict_json
from npuport.report.text import place
from npuport.rules.settings import Settings
from npuport.source.files import Skipped

MARKDOWN = "npuport-changes.md"
JSON = "npuport-changes.json"
SCHEMA = "npuport-changes/1"


@dataclass(frozen=True)
class Record:
    """What the two forms of the record are made from."""

    name: str  # of the converted project
    conversion: Conversion
    skipped: tuple[Skipped, ...]
    settings: Settings

    def markdown(self) -> bytes:
        """The record to read. Paths that are not UTF-8 are escaped."""
        return "\n".join(_markdown(self)).encode("utf-8", "backslashreplace")

    def json(self) -> bytes:
        """The record to process, schema ``npuport-changes/1``."""
        return (json.dumps(_document(self), indent=1, ensure_ascii=True) + "\n").encode()


def _markdown(record: Record) -> Iterator[str]:
    conversion = record.conversion
    yield f"# What npuport changed in {record.name}"
    yield ""
    yield (
        f"npuport {__version__}, target `{record.settings.target}`, torch {record.settings.torch_version}, "
        f"{record.settings.chip}. Line numbers are those of the original files; in the last lists, of the new."
    )
    yield ""
    yield f"- {plural(conversion.edit_count, 'edit')} in {plural(len(conversion.changed), 'file')}"
    yield f"- {plural(len(conversion.left_to_do), 'finding')} left for you"
    yield f"- {plural(len(record.skipped), 'file')} not read"
    for file in conversion.changed:
        yield ""
        yield f"## {file.source.path}"
        for change in file.changes:
            yield from _change(change)
    yield from _findings("Left for you", conversion.left_to_do)
    yield from _findings("Worth knowing", [one for one in conversion.left if one.severity is Severity.INFO])
    if record.skipped:
        yield ""
        yield "## Not read"
        yield ""
        for skipped in record.skipped:
            yield f"- `{skipped.path}`: {skipped.reason}"
    problems = [f"`{word}` {word.word}: no finding explains it" for word in conversion.unexplained]
    problems += [f"`{failure.path}` {failure.rule} {failure.message}" for failure in conversion.failures]
    if problems:
        yield ""
        yield "## Defects of npuport met on the way"
        yield ""
        yield from (f"- {problem}" for problem in problems)
    yield ""


def _findings(title: str, findings: Sequence[Finding]) -> Iterator[str]:
    if findings:
        yield ""
        yield f"## {title}"
        yield ""
        for finding in findings:
            yield f"- `{place(finding)}` {finding.code} {finding.name} ({finding.severity.value}): {finding.message}"


def _change(change: Change) -> Iterator[str]:
    yield ""
    yield f"Line {change.line}"
    yield ""
    for reason in change.reasons:
        yield f"- {reason.code} {reason.name} ({reason.applicability.value}): {reason.message}"
    yield ""
    before, after = change.before.splitlines(), change.after.splitlines()
    # A fence longer than any in the text keeps that text inside.
    runs = re.findall(r"`{3,}", change.before + change.after)
    fence = "`" * max((len(run) + 1 for run in runs), default=3)
    yield f"{fence}diff"
    yield from (f"-{line}" for line in before)
    yield from (f"+{line}" for line in after)
    yield fence


def _document(record: Record) -> dict[str, Any]:
    conversion = record.conversion
    return {
        "schema": SCHEMA,
        "npuport": __version__,
        "settings": {
            "target": record.settings.target,
            "torch_version": record.settings.torch_version,
            "chip": record.settings.chip,
        },
        "files": [
            {
                "path": file.source.path,
                "changes": [
                    {
                        "line": change.line,
                        "before": change.before,
                        "after": change.after,
                        "reasons": [
                            {
                                "code": reason.code,
                                "name": reason.name,
                                "message": reason.message,
                                "applicability": reason.applicability.value,
                                **({"proof": verdict_json(reason.verdict)} if reason.verdict is not None else {}),
                            }
                            for reason in change.reasons
                        ],
                    }
                    for change in file.changes
                ],
            }
            for file in conversion.changed
        ],
        "left": [finding_json(finding) for finding in conversion.left],
        "skipped": [{"path": one.path, "reason": one.reason, "unreadable": one.unreadable} for one in record.skipped],
        "unexplained": [
            {"path": word.path, "line": word.line, "column": word.column, "cell": word.cell, "word": word.word}
            for word in conversion.unexplained
        ],
        "failures": [
            {"path": failure.path, "rule": failure.rule, "message": failure.message} for failure in conversion.failures
        ],
    }


def plural(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def diff(files: Iterable[ConvertedFile], reverse: bool = False) -> bytes:
    """A unified diff, in the files' own bytes, that ``git apply`` and ``patch -p1`` take. ``reverse`` undoes."""
    return b"".join(_file_diff(file, reverse) for file in files if file.changed)


def _file_diff(file: ConvertedFile, reverse: bool) -> bytes:
    old, new = file.source.encode(file.source.text), file.encoded()
    if reverse:
        old, new = new, old
    name = file.source.path.encode("utf-8", "surrogateescape")
    # Only a line feed ends a line of a diff; a form feed or a lone carriage return is text like any other.
    lines = difflib.diff_bytes(
        difflib.unified_diff, _lines(old), _lines(new), b"a/" + name, b"b/" + name, lineterm=b"\n"
    )
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
