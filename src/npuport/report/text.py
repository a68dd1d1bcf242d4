"""Findings as text: one line each, or in full with source line, caret and fix."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from npuport.findings import Applicability, Finding, Severity
from npuport.report.groups import fix_level, group_of
from npuport.report.language import translate
from npuport.report.source_lines import repair, source_line
from npuport.source.files import SourceFile

WIDTH_IN_PIPES = 100
_COLOUR = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.ADVICE: "cyan", Severity.INFO: "dim"}
_TAB = 4


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the command line answer a closed pipe; rich would end the process with 1."""
        raise BrokenPipeError


def console(stream: TextIO | None = None) -> Console:
    """A console that colours in terminals only, and in pipes neither colours nor depends on a terminal's width."""
    stream = stream or sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDTH_IN_PIPES
    return _Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=True)


def place(finding: Finding) -> str:
    """``path:line:column``, with the cell for a notebook."""
    where = finding.location
    cell = "" if where.cell is None else f":cell {where.cell}"
    return f"{where.path}{cell}:{where.line}:{where.column}"


def concise(finding: Finding) -> str:
    """``path:line:column: CODE message``, with ``[*]`` before a message whose finding has a safe fix."""
    star = "[*] " if fix_level(finding) is Applicability.SAFE else ""
    return printable(f"{place(finding)}: {finding.code} {star}{finding.message}")


def fix_words(finding: Finding) -> str:
    """How the fix may be used, in words."""
    level = fix_level(finding)
    return translate("no fix" if level is None else f"{level.value} fix")


def full(findings: Iterable[Finding], sources: Mapping[str, SourceFile], width: int) -> Iterable[Text]:
    """Each finding with its source line, a caret under what it is about, and the line its fix would leave."""
    for finding in findings:
        source = sources.get(finding.location.path)
        colour = _COLOUR[finding.severity]
        yield Text.assemble(
            (printable(place(finding)), "bold"),
            "  ",
            (finding.code, colour),
            f" {finding.name}  ",
            (translate(group_of(finding).value), colour),
            f"  {fix_words(finding)}",
        )
        yield from _body(finding, source, width, colour)
        yield Text()


def _body(finding: Finding, source: SourceFile | None, width: int, colour: str) -> Iterable[Text]:
    gutter = max(5, len(str(finding.location.line)))
    room = max(20, width - gutter - 3)
    raw = source_line(finding, source) if source else ""
    if raw.strip():
        shown, caret, length = _window(raw, finding, room)
        yield Text.assemble((f"{finding.location.line:>{gutter}} │ ", "dim"), shown)
        marks = Text.assemble((" " * gutter + " │ ", "dim"), " " * caret, ("^" * length, colour))
        if caret + length + 1 + cell_len(finding.message) <= room:
            yield marks.append(f" {printable(finding.message)}", colour)
        else:
            yield marks
            yield Text.assemble((" " * gutter + " │ ", "dim"), (printable(finding.message), colour))
    else:
        yield Text.assemble((" " * gutter + " │ ", "dim"), (printable(finding.message), colour))
    repaired = repair(finding, source) if source else None
    if repaired:
        for line in repaired.here or (() if repaired.elsewhere else (translate("(the line goes)"),)):
            shown = _around(_expand(printable(line)), _expand(printable(raw)), room)
            yield Text.assemble((f"{'fix':>{gutter}} │ ", "dim"), (shown, "green"))
        for number, line in repaired.elsewhere:
            where = translate("line {number}", number=number)
            yield Text.assemble(
                (f"{'fix':>{gutter}} │ ", "dim"), (f"{printable(line)}", "green"), (f"   ({where})", "dim")
            )
    if finding.basis:
        yield Text.assemble(" " * (gutter + 3), (f"[{finding.basis}]", "dim"))


def _window(raw: str, finding: Finding, room: int) -> tuple[str, int, int]:
    """The source line cut to ``room`` columns around the caret, the caret's column from 0, and its length."""
    where = finding.location
    start = where.column - 1
    end = where.end_column - 1 if where.end_line == where.line else len(raw)
    before, marked = _expand(printable(raw[:start])), _expand(printable(raw[start:end]))
    line = before + marked + _expand(printable(raw[max(end, start) :]))
    caret, length = cell_len(before), max(1, cell_len(marked.rstrip()))
    if cell_len(line) <= room:
        indent = len(line) - len(line.lstrip())
        cut = max(0, indent - _TAB) if indent > room // 2 else 0
        return line[cut:], caret - cut, length
    # Keep the marked part, with some of what is before it.
    drop = max(0, len(before) - room // 3) if cell_len(before + marked) > room else 0
    shown = ("…" if drop else "") + line[drop:]
    column = cell_len(shown[: len(before) - drop + (1 if drop else 0)])
    if cell_len(shown) > room:
        shown = set_cell_size(shown, room - 1).rstrip() + "…"
    return shown, column, max(1, min(length, room - column - 1))


def _around(line: str, original: str, room: int) -> str:
    """``line`` cut to ``room`` columns around the first place where it differs from ``original``."""
    if cell_len(line) <= room:
        return line
    pairs = zip(line, original, strict=False)
    same = next((place for place, (new, old) in enumerate(pairs) if new != old), min(len(line), len(original)))
    drop = max(0, same - room // 3) if same > room // 2 else 0
    shown = ("…" if drop else "") + line[drop:]
    return shown if cell_len(shown) <= room else set_cell_size(shown, room - 1).rstrip() + "…"


def _expand(text: str) -> str:
    return text.replace("\t", " " * _TAB)


def printable(text: str) -> str:
    """``text`` without characters that would steer the terminal; tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        char if char == "\t" or char.isprintable() or unicodedata.category(char) not in ("Cc", "Cf", "Cs") else "�"
        for char in text
    )
