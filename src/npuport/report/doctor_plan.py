"""Versions that go together, and what two machines differ in, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from npuport.findings import Sentence
from npuport.report.doctor_text import said
from npuport.report.language import translate
from npuport.report.text import console, printable


def print_table(rows: Sequence[tuple[Sentence, str]], notes: Sequence[Sentence]) -> None:
    """Names and values below one another, then notes."""
    out = console()
    width = max(len(said(name)) for name, _ in rows)
    for name, value in rows:
        out.print(Text.assemble((f"{said(name):<{width}}  ", "dim"), printable(value)))
    for note in notes:
        out.print(Text(said(note), "yellow"))


def print_differences(rows: Sequence[tuple[str, str | None, str | None, bool]], names: tuple[str, str]) -> None:
    """Each value that differs, first what must agree between the machines of one job."""
    out = console()
    if not rows:
        out.print(translate("the two machines agree"))
        return
    for must_agree, title in ((True, translate("must agree in one job")), (False, translate("differs"))):
        chosen = [row for row in rows if row[3] is must_agree]
        if not chosen:
            continue
        out.print(Text(title, "bold red" if must_agree else "bold"))
        for key, first, second, _ in chosen:
            out.print(f"  {printable(key)}")
            for name, value in zip(names, (first, second), strict=True):
                shown = translate("none") if value is None else printable(value)
                out.print(Text.assemble((f"    {printable(name)}: ", "dim"), shown))
