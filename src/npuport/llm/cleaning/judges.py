"""Judges of one text by itself. Each gives an objection, or None."""

from __future__ import annotations

import re
from collections.abc import Callable

from npuport.llm.cleaning import settings
from npuport.llm.cleaning.verdicts import Objection
from npuport.texts.characters import characters
from npuport.texts.encoded import encoded_pieces
from npuport.texts.garbled import misread

Judge = Callable[[str], "Objection | None"]

# HTML's own names: `List<String>` of a program is no tag.
_TAG_NAMES = (
    "a abbr article aside audio b blockquote body br button canvas caption center code col dd del div dl dt em embed "
    "fieldset figcaption figure font footer form frame h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins "
    "label legend li link main meta nav noscript object ol option p param path picture pre script section select small "
    "source span strong style sub sup svg table tbody td textarea tfoot th thead title tr tt u ul video"
)
_MARKUP = re.compile(
    r"<script\b.*?</script>|<style\b.*?</style>|<!--.*?-->|<!doctype[^>]*>"
    rf"|</?(?:{'|'.join(_TAG_NAMES.split())})\b[^<>]*>"
    r"|&(?:[a-z]{2,8}|#\d{1,7}|#x[0-9a-f]{1,6});",
    re.IGNORECASE | re.DOTALL,
)
_LINK = re.compile(r"(?:https?://|ftp://|www\.)[!-~]+", re.IGNORECASE)  # what follows in Chinese belongs to the text


def length(step: settings.Length) -> Judge:
    """Too short or too long."""

    def judge(text: str) -> Objection | None:
        size = len(text.strip())
        if size < step.min_characters:
            return Objection("too-short", size, step.min_characters)
        if size > step.max_characters:
            return Objection("too-long", size, step.max_characters)
        return None

    return judge


def garbled(step: settings.Garbled) -> Judge:
    """Read in a wrong encoding, or with characters that belong to no writing."""

    def judge(text: str) -> Objection | None:
        counts = characters(text)
        share = counts.foreign / counts.length
        if share > step.max_share:
            return Objection("garbled", share, step.max_share, repr(counts.foreign_examples))
        wrong = misread(text)
        if wrong is not None and wrong.share > step.max_share:
            return Objection("garbled", wrong.share, step.max_share, f"{wrong.encoding}: {wrong.piece}")
        return None

    return judge


def encoded(step: settings.Encoded) -> Judge:
    """Data in place of language."""

    def judge(text: str) -> Objection | None:
        pieces = list(encoded_pieces(text))
        share = min(1.0, sum(map(len, pieces)) / len(text))
        if pieces and share > step.max_share:
            return Objection("encoded", share, step.max_share, pieces[0])
        return None

    return judge


def digits(step: settings.Digits) -> Judge:
    """Nothing but numbers."""

    def judge(text: str) -> Objection | None:
        counts = characters(text)
        share = counts.digits / max(1, counts.digits + counts.letters)
        return Objection("digits", share, step.max_share) if share > step.max_share else None

    return judge


def symbols(step: settings.Symbols) -> Judge:
    """Signs in place of letters."""

    def judge(text: str) -> Objection | None:
        counts = characters(text)
        share = (counts.symbols + counts.foreign) / max(1, counts.visible)
        return Objection("symbols", share, step.max_share) if share > step.max_share else None

    return judge


def html(step: settings.Html) -> Judge:
    """Markup."""

    def judge(text: str) -> Objection | None:
        if "<" not in text and "&" not in text:
            return None
        return _too_much("html", _MARKUP.findall(text), text, step.max_share)

    return judge


def links(step: settings.Links) -> Judge:
    """Web addresses."""

    def judge(text: str) -> Objection | None:
        if "://" not in text and "www." not in text.lower():
            return None
        return _too_much("links", _LINK.findall(text), text, step.max_share)

    return judge


def _too_much(reason: str, pieces: list[str], text: str, limit: float) -> Objection | None:
    share = sum(map(len, pieces)) / len(text)
    return Objection(reason, share, limit, pieces[0]) if share > limit else None
