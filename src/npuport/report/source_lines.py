"""The source line a finding points at, and that line as its fix leaves it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from npuport.findings import Edit, Finding
from npuport.source.edit import apply
from npuport.source.files import FileKind, SourceFile
from npuport.source.text import LineIndex


@dataclass(frozen=True, slots=True)
class Repair:
    """Lines that a fix leaves, and the lines it puts in elsewhere (number in the old text, new lines)."""

    here: tuple[str, ...]
    elsewhere: tuple[tuple[int, str], ...]


def source_line(finding: Finding, source: SourceFile) -> str:
    """The first line a finding covers, without its end; "" when there is none."""
    text = source.text
    if finding.location.cell is not None and source.kind is FileKind.NOTEBOOK:
        text = _cell_text(text, finding.location.cell)
    index = LineIndex(text)
    line = finding.location.line
    if line > len(index.starts):
        return ""
    end = index.starts[line] if line < len(index.starts) else len(text)
    return text[index.starts[line - 1] : end].rstrip("\r\n")


def repair(finding: Finding, source: SourceFile) -> Repair | None:
    """What the fix makes of the lines around the finding; None without a fix that edits."""
    if finding.fix is None or not finding.fix.edits:
        return None
    text, index = source.text, LineIndex(source.text)
    edits = sorted(set(finding.fix.edits))
    if finding.location.cell is not None:
        return Repair((), tuple((index.position(edit.start)[0], edit.new.strip()) for edit in edits))
    first, last = finding.location.line, max(finding.location.line, finding.location.end_line)
    start = index.starts[min(first, len(index.starts)) - 1]
    end = index.starts[last] if last < len(index.starts) else len(text)
    inside = [edit for edit in edits if start <= edit.start and edit.end <= end and not (edit.start == edit.end == end)]
    shifted = [Edit(edit.start - start, edit.end - start, edit.new) for edit in inside]
    here = apply(text[start:end], shifted).splitlines() if inside else []
    if inside:
        here = _only_changed(text[start:end].splitlines(), here)
    elsewhere = [(index.position(edit.start)[0], _outside(edit, text, index)) for edit in edits if edit not in inside]
    return Repair(tuple(here), tuple(elsewhere))


def _only_changed(before: list[str], after: list[str]) -> list[str]:
    """A fix inside a long statement shows the lines that change, not all of them."""
    if len(before) != len(after):
        return after
    return [new for old, new in zip(before, after, strict=True) if old != new]


def _outside(edit: Edit, text: str, index: LineIndex) -> str:
    """The line that an edit away from the finding leaves."""
    if edit.start == edit.end and edit.new.endswith("\n"):
        return edit.new.strip()
    first, last = index.position(edit.start)[0], index.position(max(edit.start, edit.end - 1))[0]
    start = index.starts[first - 1]
    end = index.starts[last] if last < len(index.starts) else len(text)
    return apply(text[start:end], [Edit(edit.start - start, edit.end - start, edit.new)]).strip()


def _cell_text(notebook: str, cell: int) -> str:
    try:
        source = json.loads(notebook)["cells"][cell]["source"]
    except (ValueError, LookupError, TypeError):
        return ""
    return source if isinstance(source, str) else "".join(source)
