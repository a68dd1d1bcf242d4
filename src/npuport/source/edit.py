"""Making edits in a text."""

from __future__ import annotations

from collections.abc import Sequence

from npuport.findings import Edit


def apply(text: str, edits: Sequence[Edit]) -> str:
    """``text`` with every edit made. ``edits`` are sorted and do not overlap."""
    parts: list[str] = []
    done = 0
    for edit in edits:
        parts += (text[done : edit.start], edit.new)
        done = edit.end
    return "".join((*parts, text[done:]))
