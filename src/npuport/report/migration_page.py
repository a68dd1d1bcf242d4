"""What became of CUDA code in a run, as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from npuport.report.language import counted, language, translate
from npuport.report.migration_summary import effect_words, migration_lines
from npuport.report.pages import template


def migration_page(document: Mapping[str, Any]) -> str:
    """The page, in the user's language. It carries the whole document as JSON, too."""
    return template("migration.html.j2").render(
        document=document,
        migration=document["migration"],
        embedded=embedded(document),
        effects=effect_words(),
        lines=migration_lines(document["migration"]),
        t=translate,
        counted=counted,
        language=language(),
    )


def embedded(document: Mapping[str, Any]) -> str:
    """A document as JSON for a page; "<" would let a string in it end the element that holds it."""
    return json.dumps(document, ensure_ascii=True).replace("<", "\\u003c")
