"""The language of a text by py3langid: 140 languages and varieties, the model within the package."""

from __future__ import annotations

from functools import cache
from typing import Any

from npuport.errors import UserError
from npuport.llm.cleaning import settings
from npuport.llm.cleaning.judges import Judge
from npuport.llm.cleaning.verdicts import Objection

# Varieties that it tells apart, of the languages that people mean (ISO 639-3 counts them so).
_VARIETIES = {"zh": ("wuu", "yue"), "ar": ("ary", "arz"), "no": ("nn",)}
_NO_LANGUAGE = "zxx"  # such as programs
_PIECE = 130  # characters of each sample: more changes no answer and costs time


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def known_languages(keep: list[str]) -> None:
    """
    Raises:
        UserError: a language is none that can be told.
    """
    labels = sorted(_identifier().labels)
    for language in keep:
        if language not in labels:
            raise UserError(
                "steps.language.keep: {language} is none of the languages that can be told: {known}.",
                language=language,
                known=", ".join(labels),
            )


def language(step: settings.Language) -> Judge:
    """In a language that is not kept, where that is sure."""
    varieties = (variety for language in step.keep for variety in _VARIETIES.get(language, ()))
    keep = frozenset((*step.keep, *varieties, _NO_LANGUAGE))

    def judge(text: str) -> Objection | None:
        pieces = _pieces(text)
        needed = len(pieces) // 2 + 1  # a quotation in another language is no reason to drop the text around it
        others: list[tuple[float, str]] = []
        for seen, piece in enumerate(pieces):
            if len(others) + len(pieces) - seen < needed:
                return None
            told, confidence = _identifier().classify(piece)
            if told not in keep and confidence >= step.min_confidence:
                others.append((confidence, told))
        if len(others) < needed:
            return None
        confidence, told = max(others)
        return Objection("language", confidence, step.min_confidence, told)

    return judge


def _pieces(text: str) -> list[str]:
    """All of a short text; of a long one the beginning, the middle and the end."""
    if len(text) <= 3 * _PIECE:
        return [text]
    middle = (len(text) - _PIECE) // 2
    return [text[:_PIECE], text[middle : middle + _PIECE], text[-_PIECE:]]
