"""Data that stands in a text as base64, hexadecimal numbers, escapes or binary digits."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
_KINDS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+\Z")
_HEXADECIMAL_LETTER = re.compile("[a-fA-F]")
_SEPARATOR = re.compile("[^0-9a-fA-F]")
_BINARY = re.compile(r"[01]+\Z")
_MIXED = 0.35  # runs of one case, or of digits, for each character; paths and names have 0.2 at most
_SHORTEST_BASE64 = 40

# Each with a text that it cannot do without, for searching that costs next to nothing.
_NUMBERS = "(?:[ ,:;|\\n\\r\\t]+)"
_MARKED = tuple(
    (mark, re.compile(pattern))
    for mark, pattern in (
        ("\\x", r"(?:\\x[0-9a-fA-F]{2}[^\\\n]{0,3}){8,}"),
        ("\\u", r"(?:\\u[0-9a-fA-F]{4}[^\\\n]{0,3}){6,}"),
        ("\\", r"(?:\\[0-3][0-7]{2}[^\\\n]{0,3}){8,}"),
        ("0x", r"<?0x[0-9a-fA-F]{1,16}>?(?:[ ,;\n\t]*<?0x[0-9a-fA-F]{1,16}>?){7,}"),
        ("%", r"(?:%[0-9a-fA-F]{2}){8,}"),
        ("=", r"(?:=[0-9A-F]{2}(?:=\n)?){8,}"),
        ("&#", r"(?:&#x?[0-9a-fA-F]+;){8,}"),
    )
)
_BYTES = re.compile(rf"\b[0-9a-fA-F]{{2}}\b(?:{_NUMBERS}\b[0-9a-fA-F]{{2}}\b){{15,}}")
_GROUPS = re.compile(rf"\b[0-9a-fA-F]{{4,8}}\b(?:{_NUMBERS}\b[0-9a-fA-F]{{4}}\b){{5,}}")
_BITS = re.compile(rf"\b[01]{{8}}\b(?:{_NUMBERS}\b[01]{{8}}\b){{7,}}")


def encoded_pieces(text: str) -> Iterator[str]:
    """The pieces of a text that are such data; they do not overlap much, so that their lengths add up."""
    for match in _TOKEN.finditer(text):
        if _is_data(match.group()):
            yield match.group()
    for mark, pattern in _MARKED:
        if mark in text:
            yield from pattern.findall(text)
    for pattern in (_BYTES, _GROUPS):
        for piece in pattern.findall(text):
            if _has_hexadecimal_letters(piece):
                yield piece
    yield from _BITS.findall(text)


def _is_data(token: str) -> bool:
    if _BINARY.match(token) and len(token) >= 64:
        return True
    if _HEXADECIMAL.match(token):
        return _has_hexadecimal_letters(token) and any(map(str.isdigit, token))
    if len(token) < _SHORTEST_BASE64 or not any(map(str.isdigit, token)):
        return False
    return len(_KINDS.findall(token)) > _MIXED * len(token)


def _has_hexadecimal_letters(piece: str) -> bool:
    """Tables of decimal numbers have none; of random digits three in eight are letters, of plain text's few."""
    letters = len(_HEXADECIMAL_LETTER.findall(piece))
    return letters * 25 >= len(piece) - len(_SEPARATOR.findall(piece))
