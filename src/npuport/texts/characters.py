"""How many characters of which kind a text has."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache

_LAYOUT = "\t\n\r\f\v\x85"  # controls that lay text out


@dataclass(frozen=True, slots=True)
class Characters:
    """Numbers of characters; ``length`` counts all, the others are kinds of it.

    ``letters`` include the signs that stand on or behind letters (vowels of Hindi or Thai). ``foreign`` ones belong to
    no writing: the replacement character, controls, surrogates, private and unassigned code points (as of the Unicode
    version of this Python).
    """

    length: int
    letters: int
    digits: int
    spaces: int
    symbols: int  # punctuation and symbols
    foreign: int
    foreign_examples: str

    @property
    def visible(self) -> int:
        """All that is not space."""
        return self.length - self.spaces


@lru_cache(maxsize=1)  # the judges of one text follow one another
def characters(text: str) -> Characters:
    """Count the characters of a text by kind."""
    kinds: Counter[str] = Counter()
    examples = []
    for character, number in Counter(text).items():
        kind = _kind(character)
        kinds[kind] += number
        if kind == "foreign":
            examples.append(character)
    return Characters(
        length=len(text),
        letters=kinds["letter"],
        digits=kinds["digit"],
        spaces=kinds["space"],
        symbols=kinds["symbol"],
        foreign=kinds["foreign"],
        foreign_examples="".join(sorted(examples)[:5]),
    )


@cache
def _kind(character: str) -> str:
    if character.isspace() or character in _LAYOUT:
        return "space"
    if character == "\ufffd":
        return "foreign"
    category = unicodedata.category(character)
    if category[0] in "LM":
        return "letter"
    if category[0] == "N":
        return "digit"
    if category in ("Cc", "Co", "Cn", "Cs"):
        return "foreign"
    return "symbol"  # P, S, and the invisible marks of Cf, which join and direct letters
