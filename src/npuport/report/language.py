"""The user's language. English sentences are the keys; a sentence without a translation is shown in English."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from npuport.errors import UserError


def language(environment: Mapping[str, str] | None = None) -> str:
    """ "zh" or "en": NPUPORT_LANG, else the locale's language for messages (LC_ALL, LC_MESSAGES, LANG)."""
    variables = os.environ if environment is None else environment
    chosen = next(
        (variables[name] for name in ("NPUPORT_LANG", "LC_ALL", "LC_MESSAGES", "LANG") if variables.get(name)), ""
    )
    return "zh" if chosen.lower().startswith("zh") else "en"


def translate(template: str, **values: object) -> str:
    """The sentence in the user's language, with its ``{placeholders}`` filled."""
    return _catalogue(language()).get(template, template).format(**values)


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``, in the user's language."""
    return translate(f"{{number}} {noun}{'' if number == 1 else 's'}", number=f"{number:,}")


def translate_error(error: UserError) -> str:
    """The message of an error in the user's language."""
    return translate(error.template, **error.values)


@cache
def _catalogue(code: str) -> Mapping[str, str]:
    if code == "zh":
        from npuport.report.chinese import SENTENCES

        text = Path(__file__).with_name("chinese_errors.json").read_text(encoding="utf-8")
        of_errors: dict[str, str] = json.loads(text)
        return SENTENCES | of_errors
    return {}
