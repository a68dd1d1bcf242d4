"""Notebooks: the rules for Python over the code of all cells together, and what else their cells say of CUDA."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from npuport.findings import Edit, Finding, Fix, Location, Severity
from npuport.rules.mentions import find_words, whole_word
from npuport.source.files import FileKind, SourceFile
from npuport.source.notebook import Cell, cells_of
from npuport.source.text import LineIndex

Check = Callable[[SourceFile], list[Finding]]


def findings_in_notebook(source: SourceFile, check_python: Check) -> list[Finding] | None:
    """Every finding in a notebook, in lines of its cells; None when the file is not a notebook's JSON."""
    cells = cells_of(source.text)
    if cells is None:
        return None
    code = [cell for cell in cells if cell.python is not None]
    found = list(_of_python(source, code, check_python))
    return [*found, *_mentions(source, cells, found)]


def _of_python(source: SourceFile, code: Sequence[Cell], check_python: Check) -> Iterator[Finding]:
    """The findings of the code as one module, since a name that one cell defines is used in another."""
    starts: list[int] = []
    parts: list[str] = []
    length = 0
    for cell in code:
        starts.append(length)
        text = f"{cell.python}\n"
        parts.append(text)
        length += len(text)
    whole = "".join(parts)
    index = LineIndex(whole)
    for finding in check_python(SourceFile(source.path, FileKind.PYTHON, whole)):
        where = finding.location
        start = index.starts[where.line - 1]
        place = bisect.bisect_right(starts, start) - 1
        first_line = index.position(starts[place])[0] - 1
        location = replace(
            where, line=where.line - first_line, end_line=where.end_line - first_line, cell=code[place].index
        )
        yield replace(finding, location=location, fix=_in_file(finding.fix, code, starts))


def _in_file(fix: Fix | None, code: Sequence[Cell], starts: Sequence[int]) -> Fix | None:
    """A fix as edits of the notebook's file; None where one of them cannot be made there."""
    if fix is None:
        return None
    edits: list[Edit] = []
    for edit in fix.edits:
        place = bisect.bisect_right(starts, edit.start) - 1
        start = starts[place]
        moved = code[place].edit(Edit(edit.start - start, edit.end - start, edit.new))
        if moved is None:
            return None
        edits.append(moved)
    return replace(fix, edits=tuple(sorted(edits)))


def _mentions(source: SourceFile, cells: Sequence[Cell], found: Sequence[Finding]) -> Iterator[Finding]:
    """One finding for each line of a cell that holds a CUDA word which no rule explains."""
    explained = {
        (finding.location.cell, line)
        for finding in found
        for line in range(finding.location.line, finding.location.end_line + 1)
    }
    for cell in cells:
        index = LineIndex(cell.text)
        for start, end in find_words(cell.text):
            line, column = index.position(start)
            if (cell.index, line) in explained:
                continue
            explained.add((cell.index, line))
            word = whole_word(cell.text, start, end)
            yield Finding(
                code="NP903",
                name="cuda-outside-python",
                severity=Severity.WARNING if cell.is_code else Severity.INFO,
                location=Location(source.path, line, column, line, column + len(word), cell.index),
                message=_about(cell, word),
                evidence={"word": word, "kind": source.kind.value},
            )


def _about(cell: Cell, word: str) -> str:
    if not cell.is_code:
        return "a text speaks of CUDA; it runs nothing"
    if cell.language != "python":
        return f"{word}: in a cell of {cell.language}, which no rule reads"
    return f"{word}: in a line that is a command of the notebook, or a cell that does not parse; read it"
