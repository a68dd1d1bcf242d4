"""Positions in a text: lines, columns and character offsets."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import accumulate

# What Python's tokenizer takes for the end of a line; form feeds and Unicode separators are not.
_LINE_END = re.compile(r"\r\n|\r|\n")

# The strings and comments of Python source, in order: far quicker than tokenize. A string begins with its quotes, for a
# pattern that can begin with a letter is tried at every letter; an f-string's inner quotes split it.
STRING_OR_COMMENT = re.compile(
    r"(?P<comment>\#[^\r\n]*)"
    r"|(?P<string>\"\"\"[^\"\\]*(?:(?:\\.|\"(?!\"\"))[^\"\\]*)*\"\"\"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r"|\"[^\"\\\r\n]*(?:\\.[^\"\\\r\n]*)*\"|'[^'\\\r\n]*(?:\\.[^'\\\r\n]*)*')",
    re.DOTALL,
)
_UPPER = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def lowered(text: str) -> str:
    """``text`` in lower case, each character in its place: str.lower() may lengthen what is not ASCII."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(_UPPER)


def strings_and_comments(text: str, until: int) -> list[re.Match[str]]:
    """The strings and comments of Python source that begin before the offset ``until``."""
    found = []
    for match in STRING_OR_COMMENT.finditer(text):
        if match.start() >= until:
            break
        found.append(match)
    return found


@lru_cache(maxsize=2)
def line_index(text: str) -> LineIndex:
    """The index of a text; those who look at a file one after the other share it."""
    return LineIndex(text)


class LineIndex:
    """Turns the (line, UTF-8 byte column) pairs of ``ast`` into character offsets, and offsets into (line, column)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ascii = text.isascii()

    @cached_property
    def starts(self) -> list[int]:
        """The offset at which each line begins."""
        if "\r" in self.text:
            return [0, *(match.end() for match in _LINE_END.finditer(self.text))]
        lengths = map((1).__add__, map(len, self.text.split("\n")))
        return [0, *accumulate(lengths)][:-1]

    def offset(self, line: int, byte_column: int) -> int:
        """Character offset of an ``ast`` position; ``line`` counts from 1, ``byte_column`` from 0 in UTF-8 bytes."""
        start = self.starts[line - 1]
        if self._ascii:
            return start + byte_column
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        row = self.text[start:end]
        return start + (byte_column if row.isascii() else len(row.encode()[:byte_column].decode()))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Character offsets (start, end) of a node that has a position."""
        return (
            self.offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def position(self, offset: int) -> tuple[int, int]:
        """(line from 1, column from 1 in characters) of a character offset."""
        line = bisect.bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def lines_with(self, word: str, pattern: str) -> set[int]:
        """The lines where ``pattern`` matches; ``word`` is a plain text that every match of it contains.

        Finding the word first and matching only its line is many times faster than a search for the pattern.
        """
        return self.lines_at(self._places(word), re.compile(pattern))

    def lines_naming(self, name: str) -> set[int]:
        """The lines that hold ``name`` as a whole word."""
        return {self.position(place)[0] for place in self._places_naming(name)}

    def places_naming(self, name: str) -> list[tuple[int, int]]:
        """(line, column from 1) of every ``name`` that is a whole word."""
        return [self.position(place) for place in self._places_naming(name)]

    def line(self, number: int) -> str:
        """A line, counted from 1, without its end."""
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[self.starts[number - 1] : end].rstrip("\r\n")

    def _places_naming(self, name: str) -> Iterator[int]:
        text = self.text
        for place in self._places(name):
            before, after = text[place - 1 : place], text[place + len(name) : place + len(name) + 1]
            if not _in_word(before) and not _in_word(after):
                yield place

    def _places(self, word: str) -> Iterator[int]:
        at = self.text.find(word)
        while at >= 0:
            yield at
            at = self.text.find(word, at + len(word))

    def lines_at(self, places: Iterable[int], pattern: re.Pattern[str]) -> set[int]:
        """The lines of these offsets, given in order, where ``pattern`` matches."""
        text = self.text
        found: set[int] = set()
        end = -1
        for at in places:
            if at >= end:
                end = text.find("\n", at)
                end = len(text) if end < 0 else end
                if pattern.search(text, text.rfind("\n", 0, at) + 1, end):
                    found.add(self.position(at)[0])
        return found
