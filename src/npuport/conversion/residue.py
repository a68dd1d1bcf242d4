"""An independent look at converted text: which CUDA-world words are still there, and does a finding speak for each?

This scan knows nothing of the rules on purpose. A word that no remaining finding covers is a defect of npuport:
something would have been left behind in silence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from npuport.findings import Finding
from npuport.source.files import FileKind, SourceFile
from npuport.source.text import line_index
from npuport.source.words import WordSearch

# Also inside longer words (is_cuda, cudaMalloc, PYCUDA), since such names are nearly always CUDA's.
_PARTS = """
    cuda nccl cudnn cublas cufft curand cusolver cusparse cutlass cupti cupy
    nvidia nvtx nvcc nvrtc nvml nvlink nvjpeg nvshmem tensorrt
""".split()  # noqa: SIM905 - a list of words is easier to read and to extend as words
_WHOLE = ("nsys", "nsight")
_NOT = {"cuda": "barra"}  # the fish
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_NAME = re.compile(r"[\w.-]*")
_ABOUT_THE_WHOLE_FILE = frozenset({"unparsable-python"})  # says that the file is left as it is, with all it holds
_SUPPRESSED = re.compile(r"npuport:\s*ignore", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A CUDA-world word; line and column count from 1, within ``cell`` for a notebook."""

    path: str
    line: int
    column: int
    word: str  # the whole dotted name around it
    cell: int | None = None

    def __str__(self) -> str:
        cell = "" if self.cell is None else f":cell {self.cell}"
        return f"{self.path}{cell}:{self.line}:{self.column}"


def occurrences(source: SourceFile, by_cell: bool = True) -> Iterator[Occurrence]:
    """Every CUDA-world word in a file, at most once for each dotted name.

    In a notebook only the sources of cells count; outputs tell what an earlier run printed. With ``by_cell`` False a
    notebook is read like any other text.
    """
    for cell, text in _units(source, by_cell):
        places = _places(text)
        index = line_index(text) if places else None
        done = 0
        for place, length in places:
            if place < done or index is None:
                continue
            start, done = _name_around(text, place, place + length)
            line, column = index.position(start)
            yield Occurrence(source.path, line, column, text[start:done], cell)


_SEARCH = WordSearch((*_PARTS, *_WHOLE))


def _places(text: str) -> list[tuple[int, int]]:
    """(offset, length) of each word, in order."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a character such as İ has two in lower case, which would move all after it
        lowered = text.translate(_LOWER)
    spans = _SEARCH.spans(lowered)
    return sorted((start, end - start) for word, start, end in spans if _counts(lowered, start, _SEARCH.words[word]))


def _counts(lowered: str, place: int, word: str) -> bool:
    before = _NOT.get(word)
    if before is not None and lowered.endswith(before, 0, place):
        return False
    around = lowered[max(0, place - 1) : place] + lowered[place + len(word) : place + len(word) + 1]
    return word not in _WHOLE or not any(char.isalnum() for char in around)


def _name_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The dotted name that a word is part of."""
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_.-"):
        start -= 1
    after = _NAME.match(text, end)
    return start, after.end() if after else end


def unexplained(source: SourceFile, findings: Iterable[Finding]) -> list[Occurrence]:
    """The words on lines that no finding of the same file covers and no ``npuport: ignore`` comment excuses."""
    findings = [finding for finding in findings if finding.location.path == source.path]
    if any(finding.name in _ABOUT_THE_WHOLE_FILE for finding in findings):
        return []
    # Findings about a notebook name cells, or else lines of its JSON; look where they look.
    by_cell = not findings or any(finding.location.cell is not None for finding in findings)
    found = list(occurrences(source, by_cell))
    if not found:
        return []
    covered = {
        (finding.location.cell, line)
        for finding in findings
        for line in range(finding.location.line, max(finding.location.end_line, finding.location.line) + 1)
    }
    excused = {
        (cell, line_index(text).position(match.start())[0])
        for cell, text in _units(source, by_cell)
        for match in _SUPPRESSED.finditer(text)
    }
    return [word for word in found if (word.cell, word.line) not in covered | excused]


def _units(source: SourceFile, by_cell: bool) -> Iterator[tuple[int | None, str]]:
    cells = _cells(source) if by_cell and source.kind is FileKind.NOTEBOOK else None
    if cells is None:
        yield None, source.text
    else:
        yield from cells


def _cells(source: SourceFile) -> list[tuple[int | None, str]] | None:
    """(index, source) of every cell; None when the file is not a notebook's JSON."""
    try:
        cells = json.loads(source.text)["cells"]
        texts = [cell.get("source", "") for cell in cells]
        return [(index, text if isinstance(text, str) else "".join(text)) for index, text in enumerate(texts)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
