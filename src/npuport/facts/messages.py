"""Texts of CUDA's errors that programs look for, and what the same trouble says on an NPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npuport.facts._tables import basis, rows
from npuport.findings import Basis


@dataclass(frozen=True)
class Message:
    """A text of CUDA's errors; ``npu_text`` is what to look for instead, None if nothing corresponds."""

    cuda_text: str
    npu_text: str | None
    note: str
    basis: Basis


def message_in(text: str) -> Message | None:
    """The first known CUDA error text that occurs in ``text``, whatever the case; None if there is none."""
    lowered = text.lower()
    return next((entry for entry in all_messages() if entry.cuda_text.lower() in lowered), None)


@cache
def all_messages() -> tuple[Message, ...]:
    """Every entry, in the order of the table."""
    return tuple(
        Message(cuda_text=row["cuda_text"], npu_text=row["npu_text"] or None, note=row["note"], basis=basis(row))
        for row in rows("messages")
    )
