"""Notebooks: their cells, where each character of a cell stands in the file, and their code as one Python text.

Cells are edited in the file's own text, so that outputs, metadata and layout stay byte for byte as they were.
"""

from __future__ import annotations

import ast
import bisect
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from npuport.findings import Edit

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MAGIC_LINE = re.compile(r"(?m)^(?P<indent>[ \t]*)[%!][^\r\n]*")
_MAGIC_VALUE = re.compile(r"(?m)(?<==)(?P<space>[ \t]*)[%!](?=[\w{(])[^\r\n]*")
# Cell magics after which the cell is still Python.
_PYTHON_CELLS = {"time", "timeit", "capture", "prun", "px"}


@dataclass(frozen=True, slots=True)
class _Piece:
    """One string of the file that is part of a cell's source: offsets of its text in the cell and in the file."""

    cell_start: int
    file_start: int  # after the opening quote
    raw: str  # between the quotes, as it stands in the file


@dataclass(frozen=True)
class Cell:
    """One cell. ``index`` counts all cells from 0."""

    index: int
    is_code: bool
    text: str
    pieces: tuple[_Piece, ...]

    @cached_property
    def language(self) -> str:
        """ "python", or the name of the magic that makes the cell something else."""
        magic = re.match(r"\s*%%(\w+)", self.text)
        return "python" if magic is None or magic[1] in _PYTHON_CELLS else magic[1]

    @cached_property
    def python(self) -> str | None:
        """The code with magics replaced by as many characters that do nothing; None where it does not parse."""
        if not self.is_code or self.language != "python":
            return None
        text = _MAGIC_LINE.sub(lambda match: match["indent"] + _nothing(match, "indent"), self.text)
        text = _MAGIC_VALUE.sub(lambda match: match["space"] + _nothing(match, "space"), text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return text

    def edit(self, edit: Edit) -> Edit | None:
        """An edit of the cell's text as one of the file's; None where it crosses from one string to the next."""
        starts = [piece.cell_start for piece in self.pieces]
        place = bisect.bisect_right(starts, edit.start) - 1
        if edit.start == edit.end and place > 0 and edit.start == starts[place] and not edit.new.endswith("\n"):
            place -= 1  # at the end of the line before, unless a line is put in
        if place < 0:
            return None
        piece = self.pieces[place]
        offsets = _offsets(piece.raw)
        first, last = edit.start - piece.cell_start, edit.end - piece.cell_start
        if last >= len(offsets):
            return None
        new = json.dumps(edit.new, ensure_ascii=piece.raw.isascii())[1:-1]
        return Edit(piece.file_start + offsets[first], piece.file_start + offsets[last], new)


def _nothing(match: re.Match[str], kept: str) -> str:
    """A statement, or a value, that does nothing and is as long as what it stands for."""
    length = len(match.group()) - len(match[kept])
    return "0" if length == 1 else "0#" + "." * (length - 2)


def _offsets(raw: str) -> list[int]:
    """For each character of a decoded string, and for its end, where it begins in the raw text."""
    offsets = []
    position = 0
    while position < len(raw):
        offsets.append(position)
        escape = _ESCAPE.match(raw, position) if raw[position] == "\\" else None
        position = escape.end() if escape else position + 1
    return [*offsets, len(raw)]


def cells_of(text: str) -> tuple[Cell, ...] | None:
    """The cells of a notebook's file; None when it is not a notebook's JSON."""
    try:
        document = json.loads(text)
        kinds = [cell.get("cell_type") for cell in document["cells"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    sources = list(_sources(text))
    if len(sources) != len(kinds):
        return None
    return tuple(
        _cell(index, kind == "code", strings) for index, (kind, strings) in enumerate(zip(kinds, sources, strict=True))
    )


def _cell(index: int, is_code: bool, strings: list[tuple[int, str]]) -> Cell:
    pieces, parts, length = [], [], 0
    for start, raw in strings:
        part = json.loads(f'"{raw}"', strict=False)
        pieces.append(_Piece(length, start, raw))
        parts.append(part)
        length += len(part)
    return Cell(index, is_code, "".join(parts), tuple(pieces))


def _sources(text: str) -> Iterator[list[tuple[int, str]]]:
    """For each cell the strings of its source: where they begin in the file, and their raw text."""
    path: list[str | int] = []
    key = ""
    found: list[tuple[int, str]] = []
    after_colon = False
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in ("{", "["):
            path.append(key)
            key, after_colon = "", False
            if token == "{" and path == ["", "cells", ""]:
                found = []
        elif token in ("}", "]"):
            if token == "}" and path == ["", "cells", ""]:
                yield found
            key = ""
            path.pop()
            after_colon = False
        elif token == ":":
            after_colon = True
        elif token == ",":
            after_colon = False
            key = ""
        elif token.startswith('"'):
            in_source = path == ["", "cells", "", "source"] or (path == ["", "cells", ""] and key == "source")
            if in_source and (after_colon or path[-1] == "source"):
                found.append((match.start() + 1, token[1:-1]))
            elif not after_colon:
                key = token[1:-1]
