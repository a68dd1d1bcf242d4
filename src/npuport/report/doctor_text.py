"""What is wrong with a machine, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from npuport.findings import Diagnosis, Sentence, Severity
from npuport.report.language import translate
from npuport.report.text import console, printable

Headline = Sequence[tuple[Sentence, str]]

_COLOUR = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.ADVICE: "cyan", Severity.INFO: "dim"}


def said(sentence: Sentence) -> str:
    """The sentence in the user's language."""
    values = {name: said(value) if isinstance(value, Sentence) else value for name, value in sentence.values.items()}
    return printable(translate(sentence.template, **values))


def level(severity: Severity) -> str:
    """What a severity means for the training."""
    return {
        Severity.ERROR: translate("will fail"),
        Severity.WARNING: translate("may differ or fail"),
        Severity.ADVICE: translate("can be better"),
        Severity.INFO: translate("worth knowing"),
    }[severity]


def print_diagnoses(headline: Headline, diagnoses: Sequence[Diagnosis]) -> None:
    """The machine in a few lines, then each thing that is wrong: seen, why, what to do."""
    out = console()
    width = max((len(said(name)) for name, _ in headline), default=0)
    for name, value in headline:
        out.print(Text.assemble((f"{said(name):<{width}}  ", "dim"), printable(value)))
    for one in diagnoses:
        out.print()
        title = f"{one.code} {one.name}"
        out.print(Text.assemble((title, f"bold {_COLOUR[one.severity]}"), f"  {level(one.severity)}"))
        out.print(Text("  " + said(one.seen)))
        out.print(Text.assemble((f"  {said(one.why)}  [{one.basis}]", "dim")))
        out.print(Text.assemble((translate("fix") + " ", "green"), said(one.fix)))
        for command in one.commands:
            out.print(Text.assemble("    ", (printable(command), "green")))
    out.print()
    out.print(summary(diagnoses))


def summary(diagnoses: Sequence[Diagnosis]) -> str:
    """``2 will fail, 1 can be better``, or that nothing is wrong."""
    counts = [(severity, sum(one.severity is severity for one in diagnoses)) for severity in Severity]
    words = [f"{number} {level(severity)}" for severity, number in counts if number]
    return ", ".join(words) or translate("nothing is wrong, as far as can be seen without running anything")
