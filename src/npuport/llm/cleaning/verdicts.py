"""Why a record is dropped, and the notes that the judging stage leaves of it for the writing one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from datatrove.data import Document

_LONGEST_PIECE = 80  # characters


@dataclass(frozen=True, slots=True)
class Objection:
    """``measured`` is more (or, of length, less) than ``limit``; ``piece`` shows what was found, where that can be."""

    reason: str
    measured: float | None = None
    limit: float | None = None
    piece: str = ""


class Verdict(msgspec.Struct, frozen=True, array_like=True):
    """Record ``number`` of its shard is dropped."""

    number: int
    reason: str
    measured: float | None
    limit: float | None
    piece: str


class Notes(msgspec.Struct):
    """What the judging of a shard found."""

    records: int
    dropped: list[Verdict]


@dataclass
class Verdicts:
    """Collects the verdicts of one task; datatrove's filters take it for the writer of what they exclude."""

    folder: Path
    dropped: list[Verdict] = field(default_factory=list)

    def __enter__(self) -> Verdicts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing: `save` writes."""

    def write(self, document: Document, rank: int = 0, **_: Any) -> None:
        """Note the objection that a step left with the document."""
        self.add(int(document.id), document.metadata["objection"])

    def add(self, number: int, objection: Objection) -> None:
        """Record ``number`` is dropped."""
        measured = None if objection.measured is None else round(objection.measured, 4)
        piece = objection.piece[:_LONGEST_PIECE]
        self.dropped.append(Verdict(number, objection.reason, measured, objection.limit, piece))

    def save(self, rank: int, rows: int, records: int) -> None:
        """Write the notes of the task; ``rows`` counts blank lines too."""
        notes = Notes(records, sorted(self.dropped, key=lambda one: one.number))
        (self.folder / f"{rank:05d}.json").write_bytes(msgspec.json.encode(notes))
        (self.folder / f"{rank:05d}.rows").write_text(str(rows))


def rows_of(folder: Path, rank: int) -> int:
    """How many lines or rows the shard of a task has."""
    return int((folder / f"{rank:05d}.rows").read_text())


def notes_of(folder: Path, rank: int) -> Notes:
    """The notes of a task."""
    return msgspec.json.decode((folder / f"{rank:05d}.json").read_bytes(), type=Notes)
