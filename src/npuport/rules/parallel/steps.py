"""What has to change, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from npuport.findings import Edit


@dataclass(frozen=True, slots=True)
class Step:
    """One part of the change: in words for a person, with names from the file, and as edits."""

    words: str
    edits: tuple[Edit, ...] = ()
    unclear: str = ""  # why npuport does not make these edits itself; "" where it does
