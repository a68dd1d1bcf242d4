"""Converting the text of one file. Pure: the command line and the import hook call the same function."""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from npuport.conversion.edits import Selection, choose
from npuport.findings import Edit, Finding
from npuport.source.edit import apply
from npuport.source.files import FileKind, SourceFile


@dataclass(frozen=True, slots=True)
class Converted:
    """The new text, the findings whose fixes it contains, and those left (all located in the old text)."""

    text: str
    applied: tuple[Finding, ...]
    left: tuple[Finding, ...]
    edits: tuple[Edit, ...] = ()


class BrokenFixError(Exception):
    """Fixes that make a file unusable: a defect of npuport. The message names the rules; the file stays as it is."""


def convert_text(source: SourceFile, findings: Sequence[Finding], unsafe: bool) -> Converted:
    """Apply the safe fixes (and the unsafe ones, if wanted) of ``findings`` to ``source``.

    Raises:
        BrokenFixError: when the result would not parse or could not be written in the file's encoding.
    """
    try:
        selection = choose(source.text, findings, unsafe)
    except ValueError as error:
        raise BrokenFixError(str(error)) from error
    if not selection.chosen:
        return Converted(source.text, (), selection.left)
    text = apply(source.text, selection.edits)
    problem = _problem(source, text)
    if problem:
        raise BrokenFixError(f"{problem} ({_culprits(source, selection)})")
    return Converted(text, selection.chosen, selection.left, selection.edits)


def _problem(source: SourceFile, text: str) -> str:
    """Why ``text`` must not replace the text of ``source``; "" when it may."""
    try:
        source.encode(text)
    except UnicodeEncodeError as error:
        return f"the fix needs a character that {source.encoding} lacks: {error.object[error.start]!r}"
    if source.kind is FileKind.PYTHON:
        # The new text first: parsing is dear, and nearly always it settles the question.
        return "" if _parses(text) or not _parses(source.text) else "the converted file would not parse"
    if source.kind is FileKind.JSON:
        return "" if _loads(text)[0] or not _loads(source.text)[0] else "the converted file would not be JSON"
    if source.kind is FileKind.NOTEBOOK:
        return _notebook_problem(source.text, text)
    return ""


def _culprits(source: SourceFile, selection: Selection) -> str:
    """The rules whose fix alone breaks the file; all of them when only their sum does."""
    alone = {
        finding.code
        for finding in selection.chosen
        if finding.fix and _problem(source, apply(source.text, sorted(set(finding.fix.edits))))
    }
    return ", ".join(sorted(alone or {finding.code for finding in selection.chosen}))


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not our news
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _loads(text: str) -> tuple[bool, Any]:
    try:
        return True, json.loads(text)
    except (ValueError, RecursionError):
        return False, None


def _notebook_problem(before: str, after: str) -> str:
    was_json, old = _loads(before)
    if not was_json:
        return ""
    is_json, new = _loads(after)
    if not is_json:
        return "the converted notebook would not be JSON"
    old_cells, new_cells = list(code_cells(old)), list(code_cells(new))
    if [index for index, _ in old_cells] != [index for index, _ in new_cells]:
        return "the converted notebook would have other cells"
    for (index, old_text), (_, new_text) in zip(old_cells, new_cells, strict=True):
        if _parses(old_text) and not _parses(new_text):
            return f"cell {index} of the converted notebook would not parse"
    return ""


def code_cells(notebook: Any) -> Iterator[tuple[int, str]]:
    """(index, source) of each code cell of a parsed notebook; nothing for JSON of another shape."""
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    for index, cell in enumerate(cells if isinstance(cells, list) else ()):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", "")
            yield index, source if isinstance(source, str) else "".join(str(line) for line in source)
