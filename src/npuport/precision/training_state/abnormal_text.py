"""Texts that spoil a training: garbled characters, code of machines, digits, one thing over and over."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator

from npuport.findings import Sentence, say
from npuport.texts.characters import characters
from npuport.texts.encoded import encoded_pieces
from npuport.texts.garbled import misread

_SHORTEST = 40  # characters; of less nothing can be said
_GARBLED = 0.03  # share of characters that no writing has
_ENCODED = 0.3  # share of a text that is in such runs
_DIGITS = 0.7
_PACKED = 10.0  # times smaller when it is compressed: ordinary text is 2 to 4 times


def abnormal(text: str) -> Iterator[Sentence]:
    """What is out of the ordinary in a text, if anything."""
    length = len(text)
    if length < _SHORTEST:
        return
    counts, wrong = characters(text), misread(text)
    garbled = max(counts.foreign / length, wrong.share if wrong else 0.0)
    if garbled > _GARBLED:
        yield say("garbled: {share} of its characters belong to no writing", share=f"{garbled:.0%}")
    encoded = min(1.0, sum(map(len, encoded_pieces(text))) / length)
    if encoded > _ENCODED:
        yield say("{share} of it is encoded data or byte code (base64, hexadecimal, long runs)", share=f"{encoded:.0%}")
    digits = counts.digits / max(1, counts.visible)
    if digits > _DIGITS:
        yield say("{share} of its characters are digits", share=f"{digits:.0%}")
    data = text.encode("utf-8", "replace")
    packed = len(data) / len(zlib.compress(data))
    if packed > _PACKED and length > 5 * _SHORTEST:
        piece, count = _most_repeated(text)
        yield say("repeats itself ({count} times {piece})", count=count, piece=repr(piece))


def _most_repeated(text: str) -> tuple[str, int]:
    words = re.findall(r"\S+", text)
    pieces = Counter(words) if len(words) > 4 else Counter(text[at : at + 4] for at in range(0, len(text), 4))
    piece, count = pieces.most_common(1)[0]
    return piece[:20], count
