"""Text that was read in another encoding than it was written in (mojibake).

Every such reading can be taken back: the characters as bytes of the encoding that was assumed are UTF-8, in sequences
that ordinary text of that encoding does not have. What East Asian or Cyrillic text becomes as Latin-1 has another mark:
words of nothing but letters with accents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SAMPLE = 4_000  # characters outside ASCII that are looked at
_CHUNK = 100  # judged together: a text may be garbled in part
_FEWEST = 3  # sequences; fewer are a coincidence, or a quotation
_COVERED = 0.7  # share of a chunk that is such sequences; ordinary Chinese as GBK has a fifth
_ALL, _MANY = 0.95, 12  # of fewer sequences than this all must fit: a few characters of Chinese can by chance
_ACCENTS = 20  # characters in words of nothing but accents, which no language has
_REPRESENTED = 0.9  # share of the characters that the encoding must have, to be the one that was assumed

_FOLLOWING = "\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"  # 0x80 to 0xbf as Latin-1 or as Windows-1252
_AS_LATIN = re.compile(
    f"[\u00c2-\u00df][{_FOLLOWING}]|[\u00e0-\u00ef][{_FOLLOWING}]{{2}}|[\u00f0-\u00f4][{_FOLLOWING}]{{3}}"
)
_LATIN_ONLY = re.compile("[\u00a1-\u00ff]{4,}")
_UTF8 = re.compile(rb"[\xe1-\xef][\x80-\xbf]{2}|[\xc3-\xdf][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{3}")
# The encodings that give characters of these scripts.
_ENCODINGS = (
    (re.compile("[\u0400-\u04ff]"), ("cp1251",)),
    (re.compile("[\u4e00-\u9fff]"), ("gb18030", "cp932", "big5", "cp949")),
)
_OUTSIDE_ASCII = re.compile(r"[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class Misread:
    """``share`` of all characters that were misread, with a piece of them."""

    share: float
    piece: str
    encoding: str  # the one that was assumed


def misread(text: str) -> Misread | None:
    """Where a text was read in the wrong encoding; None where nothing tells so."""
    if text.isascii():
        return None
    outside = " ".join(_OUTSIDE_ASCII.findall(text))
    affected, seen, first = 0, 0, None
    for start in range(0, min(len(outside), _SAMPLE), _CHUNK):
        chunk = outside[start : start + _CHUNK]
        size = len(chunk) - chunk.count(" ")
        seen += size
        wrong, encoding = _assumed(chunk, size)
        if wrong:
            affected += wrong
            first = first or (chunk[:20], encoding)
    if first is None:
        return None
    share = affected / seen * (len(outside) - outside.count(" ")) / len(text)
    return Misread(share, *first)


def _assumed(chunk: str, size: int) -> tuple[int, str]:
    """How many characters of a chunk were misread, in which encoding; ``size`` is its length without spaces."""
    sequences = _AS_LATIN.findall(chunk)
    if len(sequences) >= _FEWEST and sum(map(len, sequences)) > _COVERED * size:
        return size, "Windows-1252"
    accents = sum(len(word) for word in _LATIN_ONLY.findall(chunk) if _is_word_of_accents(word))
    if accents > min(_ACCENTS, _COVERED * size):
        return accents, "Latin-1"
    known = chunk.replace("\ufffd", "")
    for script, encodings in _ENCODINGS:
        if len(script.findall(chunk)) * 2 > size:  # rows of signs are bytes of such encodings too
            found = next((encoding for encoding in encodings if _is_utf8_in(known, encoding)), "")
            return (size if found else 0), found
    return 0, ""


def _is_utf8_in(text: str, encoding: str) -> bool:
    data = text.encode(encoding, "ignore")
    if len(data.decode(encoding, "ignore")) < _REPRESENTED * len(text):
        return False
    sequences = _UTF8.findall(data)
    covered = sum(map(len, sequences))
    needed = _COVERED if len(sequences) >= _MANY else _ALL
    return len(sequences) >= _FEWEST and covered > needed * (len(data) - data.count(b" "))


def _is_word_of_accents(word: str) -> bool:
    letters = sum(character >= "\u00c0" and character not in "×÷" for character in word)
    return letters * 3 >= len(word) and len(set(word)) >= 3
