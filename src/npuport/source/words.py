"""Finding any of many plain texts in one pass, whose time does not depend on how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick


class WordSearch:
    """The places of ``words``, which are sought together; upper and lower case differ."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(sorted(set(words)))

    @cached_property
    def _automaton(self) -> AhoCorasick:
        from ahocorasick_rs import AhoCorasick, Implementation

        return AhoCorasick(self.words, implementation=Implementation.DFA, store_patterns=False)

    def spans(self, text: str) -> list[tuple[int, int, int]]:
        """(index in ``words``, start, end) of every occurrence, also of words inside others; by their ends."""
        try:
            return self._automaton.find_matches_as_indexes(text, overlapping=True)
        except UnicodeEncodeError:  # half a surrogate pair, which a notebook's JSON may hold
            plain = text.encode("utf-8", "replace").decode()
            return self._automaton.find_matches_as_indexes(plain, overlapping=True)

    def places(self, text: str) -> dict[str, list[int]]:
        """Where each word that occurs begins, in order."""
        found: dict[int, list[int]] = {}
        for word, start, _ in self.spans(text):
            found.setdefault(word, []).append(start)
        return {self.words[word]: starts for word, starts in found.items()}
