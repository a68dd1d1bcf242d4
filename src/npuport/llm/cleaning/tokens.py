"""Words of any language, without a model: what MinHash, n-grams and repetition count in."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

import numpy as np
from datatrove.utils.word_tokenizers import WordTokenizer
from numpy.typing import NDArray

# Writings without spaces between words: their characters are the words. Thai, Lao, Tibetan, Myanmar, Khmer, kana, Han.
_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_KNOWN_WORDS = 500_000  # hashes that are kept


def _class_of_words() -> str:
    """Letters, digits and the signs that stand on them, of writings with spaces, for a pattern.

    The standard library's ``\\w`` leaves the signs out, which would cut the words of Hindi into pieces.
    """
    known = [
        code
        for code in range(0x10000)
        if unicodedata.category(chr(code))[0] in "LMN" and not _UNSPACED_CHARACTER.match(chr(code))
    ]
    starts = [code for code, before in zip(known, [-1, *known], strict=False) if code != before + 1]
    ends = [code for code, after in zip(known, [*known[1:], -1], strict=True) if after != code + 1]
    ranges = (f"\\u{start:04x}-\\u{end:04x}" for start, end in zip(starts, ends, strict=True))
    return "".join(ranges) + "\U00010000-\U0001efff"


_SPACED = _class_of_words()
_WORD = re.compile(f"[{_SPACED}]+|[{_UNSPACED}]")
_PAIR = re.compile(f"[{_SPACED}]+|[{_UNSPACED}]{{1,2}}")


def words(text: str) -> list[str]:
    """Runs of letters and digits whatever their case; of writings without spaces, each character."""
    folded = text.casefold()
    return (_ASCII_WORD if folded.isascii() else _WORD).findall(folded)


def is_unspaced(word: str) -> bool:
    """Whether a word is a character of a writing without spaces."""
    return _UNSPACED_CHARACTER.match(word) is not None


class WordsOrPairs(WordTokenizer):
    """Words for datatrove's measures of repetition: of writings without spaces, pairs of characters.

    datatrove's own tokenizers download models, or take a package for each language.
    """

    def word_tokenize(self, text: str) -> list[str]:
        folded = text.casefold()
        return (_ASCII_WORD if folded.isascii() else _PAIR).findall(folded)

    # datatrove's class asks for these two; its measures of repetition take words alone.
    def sent_tokenize(self, text: str) -> list[str]:
        raise NotImplementedError

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        raise NotImplementedError


class _Hashes(dict[str, int]):
    """64 bits of each word, the same in every process."""

    def __missing__(self, word: str) -> int:
        if len(self) > _KNOWN_WORDS:
            self.clear()
        value = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
        self[word] = value
        return value


_hashes = _Hashes()
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no bit of a word is lost


@lru_cache(maxsize=1)  # the steps of one text follow one another
def hashed_words(text: str) -> NDArray[np.uint64]:
    """A hash of each of the text's `words`."""
    found = words(text)
    return np.fromiter(map(_hashes.__getitem__, found), dtype=np.uint64, count=len(found))


def grams(hashed: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """Hashes [n - size + 1] of all runs of ``size`` words; equal runs have equal hashes.

    A polynomial of the words, put together from runs of 1, 2, 4, … words: few passes also for long runs.
    """
    number = len(hashed) - size + 1
    if number <= 0:
        return np.empty(0, dtype=np.uint64)
    found: NDArray[np.uint64] = np.zeros(len(hashed) + 1, dtype=np.uint64)
    have = 0
    run, length = hashed, 1
    while length <= size:
        if size & length:
            most = len(hashed) - have - length + 1
            found = run[:most] * _power(have) + found[length : length + most]
            have += length
        if 2 * length <= size:
            run = run[:-length] * _power(length) + run[length:]
        length *= 2
    found ^= found >> np.uint64(29)
    found *= _FACTOR
    return found


def _power(exponent: int) -> np.uint64:
    power: np.uint64 = np.uint64(pow(int(_FACTOR), exponent, 1 << 64))
    return power
