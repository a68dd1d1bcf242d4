"""Texts with words of given lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ahocorasick_rs import AhoCorasick

from npuport.errors import UserError
from npuport.llm.cleaning import settings
from npuport.llm.cleaning.judges import Judge
from npuport.llm.cleaning.tokens import is_unspaced
from npuport.llm.cleaning.verdicts import Objection


def listed(files: Sequence[str]) -> list[str]:
    """The words of the lists.

    Raises:
        UserError: a list cannot be read, or is empty.
    """
    found: dict[str, None] = {}
    for name in files:
        try:
            lines = Path(name).read_text(encoding="utf-8-sig").splitlines()
        except OSError as error:
            raise UserError("{path} cannot be read: {reason}.", path=name, reason=error.strerror) from error
        except UnicodeDecodeError as error:
            raise UserError("{path} is not UTF-8: {reason}.", path=name, reason=error) from error
        own = [line.strip().casefold() for line in lines if line.strip() and not line.startswith("#")]
        if not own:
            raise UserError("{path} holds no words.", path=name)
        found.update(dict.fromkeys(own))
    return list(found)


def sensitive(step: settings.Words, known: Sequence[str]) -> Judge:
    """More than ``max_hits`` of the words."""
    automaton = AhoCorasick(known)
    # "ass" is no part of "class"; characters of Chinese have no such bounds.
    bounded = [(_has_bound(word[0]), _has_bound(word[-1])) for word in known]

    def judge(text: str) -> Objection | None:
        folded = text.casefold()
        hits = 0
        first = ""
        for word, start, end in automaton.find_matches_as_indexes(folded, overlapping=True):
            left, right = bounded[word]
            if left and start and _has_bound(folded[start - 1]):
                continue
            if right and end < len(folded) and _has_bound(folded[end]):
                continue
            hits += 1
            first = first or known[word]
        return Objection("words", hits, step.max_hits, first) if hits > step.max_hits else None

    return judge


def _has_bound(character: str) -> bool:
    return character.isalnum() and not is_unspaced(character)
