"""What is wrong with an ATC command."""

from __future__ import annotations

from dataclasses import dataclass

from npuport.findings import Basis, Sentence, Severity


@dataclass(frozen=True)
class Problem:
    """One thing that ATC refuses (ERROR), that does not do what it seems to (WARNING) or that may be better (ADVICE).

    ``code`` is the error that CANN documents for it, "" where none is known.
    """

    severity: Severity
    sentence: Sentence
    code: str
    basis: Basis | None


class NotUnderstoodError(Exception):
    """A value that has not the form of its option: CANN's error for that ("" if none is known), and why."""

    def __init__(self, code: str, sentence: Sentence) -> None:
        super().__init__(str(sentence))
        self.code = code
        self.sentence = sentence


def refused(code: str, basis: Basis | None, sentence: Sentence) -> Problem:
    """ATC ends with an error."""
    return Problem(Severity.ERROR, sentence, code, basis)


def doubtful(basis: Basis | None, sentence: Sentence, code: str = "") -> Problem:
    """ATC runs, or may run, and does something else than was meant."""
    return Problem(Severity.WARNING, sentence, code, basis)


def advised(basis: Basis | None, sentence: Sentence) -> Problem:
    """Documents advise something else."""
    return Problem(Severity.ADVICE, sentence, "", basis)
