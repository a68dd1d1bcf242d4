"""Texts that say one thing over and over, by datatrove's filter with Gopher's measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from datatrove.data import Document
from datatrove.pipeline.filters.gopher_repetition_filter import GopherRepetitionFilter
from datatrove.utils.text import split_into_words

from npuport.llm.cleaning import settings
from npuport.llm.cleaning.tokens import WordsOrPairs
from npuport.llm.cleaning.verdicts import Objection, Verdicts

_TOP = ((2, 0.2), (3, 0.18), (4, 0.16))
_REPEATED = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))
_LINES, _LINE_CHARACTERS = 0.3, 0.2


class Repetition(GopherRepetitionFilter):
    """datatrove's filter, with words of any language.

    It takes the most frequent n-gram's share also where nothing is repeated, which drops ordinary short texts; here
    only an n-gram that stands there twice counts. Its loops are run for those sizes alone that can be over a threshold.
    """

    def __init__(self, step: settings.Repetition, verdicts: Verdicts) -> None:
        strict = step.strictness
        super().__init__(
            dup_line_frac=_LINES / strict,
            dup_para_frac=_LINES / strict,
            dup_line_char_frac=_LINE_CHARACTERS / strict,
            dup_para_char_frac=_LINE_CHARACTERS / strict,
            exclusion_writer=verdicts,
            language=WordsOrPairs(),
        )
        self._top = tuple((size, share / strict) for size, share in _TOP)
        self._repeated = tuple((size, share / strict) for size, share in _REPEATED)

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        words = split_into_words(doc.text, self.language)
        self.top_n_grams = tuple(one for one in self._top if _top_share(words, one[0], doc.text) > one[1])
        self.dup_n_grams = tuple(_possible(words, self._repeated, doc.text))
        result = super().filter(doc)
        if result is True:
            return True
        measure = result[1]
        doc.metadata["objection"] = Objection("repetition", piece=measure)
        return False, "repetition"


def _top_share(words: list[str], size: int, text: str) -> float:
    """The share of the text that its most frequent n-gram has; 0 where none stands there twice."""
    grams = Counter(zip(*(words[start:] for start in range(size)), strict=False))
    if not grams:
        return 0.0
    gram, number = grams.most_common(1)[0]
    return len(" ".join(gram)) * number / len(text) if number > 1 else 0.0


def _possible(words: list[str], measures: Iterable[tuple[int, float]], text: str) -> Iterator[tuple[int, float]]:
    """The measures of repeated n-grams that can be over their thresholds, by number and longest word."""
    longest = max(map(len, words), default=0)
    for size, share in measures:
        grams = len(words) - size + 1
        again = grams - len(set(zip(*(words[start:] for start in range(size)), strict=False)))
        if again <= 0:
            return  # then no longer n-gram is repeated either
        if again * size * longest > share * len(text):
            yield size, share
