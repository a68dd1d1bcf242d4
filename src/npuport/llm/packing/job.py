"""Packing from files to a folder of samples."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npuport.errors import UserError
from npuport.llm.packing import arrow, dialogues, documents, megatron, torch_file
from npuport.llm.packing.encoding import Encoded, encoded
from npuport.llm.packing.ragged import Ragged
from npuport.llm.packing.reading import Piece, pieces_of
from npuport.llm.packing.samples import Samples
from npuport.llm.packing.statistics import Statistics, without_answer

STATISTICS = "statistics.json"


@dataclass(frozen=True)
class Job:
    """What to pack and how.

    Args:
        encode: token ids of what ``field`` holds, where these are not ids already.
        labels: a field beside given ids, negative where the loss counts nothing.
        end: the token behind each document; None packs dialogues.
        too_long: split, cut or skip, for dialogues.
        form: arrow, megatron or pt.
    """

    inputs: Sequence[Path]
    field: str
    encode: Callable[[Sequence[Any]], list[Encoded]]
    max_length: int
    pad: int
    labels: str | None = None
    end: int | None = None
    too_long: str = "split"
    form: str = "arrow"


def run(job: Job, folder: Path) -> Statistics:
    """Write the samples into a new folder, with statistics.json; whole or not at all.

    Raises:
        UserError: an input cannot be read or packed, there is nothing in it, or the folder holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError("{path} is there already: choose another folder.", path=folder)
    statistics = Statistics(job.max_length)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            _write(job, aside, folder.name, statistics)
            text = json.dumps(statistics.summary(), indent=2, ensure_ascii=False) + "\n"
            (aside / STATISTICS).write_text(text, encoding="utf-8")
            aside.chmod(0o755)
            aside.replace(folder)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    except OSError as error:
        raise UserError("{path} cannot be written: {reason}.", path=folder, reason=error.strerror or error) from error
    return statistics


def _write(job: Job, folder: Path, name: str, statistics: Statistics) -> None:
    pieces = _read(job, statistics)
    if job.end is not None and job.form == "megatron":
        megatron.write_documents(_whole(pieces, job.end, statistics), folder, name)
        if not statistics.sequences:
            raise _nothing(job)
        return
    batches = _packed(job, pieces, statistics)
    first = next(batches, None)
    if first is None:
        raise _nothing(job)
    every = itertools.chain([first], batches)
    if job.form == "arrow":
        arrow.write(every, folder)
    elif job.form == "megatron":
        megatron.write_samples(every, folder, name)
    else:
        torch_file.write(every, folder / "samples.pt")


def _nothing(job: Job) -> UserError:
    return UserError("there is nothing to pack in {paths}.", paths=", ".join(map(str, job.inputs)))


def _read(job: Job, statistics: Statistics) -> Iterator[tuple[Piece, Ragged]]:
    for piece in pieces_of(job.inputs):
        records = encoded(piece, field=job.field, labels=job.labels, encode=job.encode)
        statistics.saw(records)
        yield piece, records


def _packed(job: Job, pieces: Iterable[tuple[Piece, Ragged]], statistics: Statistics) -> Iterator[Samples]:
    batches: Iterable[Samples]
    if job.end is None:
        batches = (_dialogues(job, piece, records, statistics) for piece, records in pieces)
    else:
        ended = (documents.ended(records, job.end) for _, records in pieces)
        batches = documents.pack(ended, job.max_length, job.pad)
    for samples in batches:
        statistics.packed(samples)
        if len(samples):
            yield samples


def _dialogues(job: Job, piece: Piece, records: Ragged, statistics: Statistics) -> Samples:
    fitted = dialogues.fit(records, job.max_length, job.too_long)
    answered = int(np.count_nonzero(dialogues.predictable(fitted.pieces)))
    statistics.fitted(fitted, answered, piece.place)
    statistics.no_answer += map(piece.place, without_answer(fitted.pieces))
    return dialogues.pack(fitted.pieces, job.max_length, job.pad)


def _whole(pieces: Iterable[tuple[Piece, Ragged]], end: int, statistics: Statistics) -> Iterator[Ragged]:
    for _, records in pieces:
        whole = documents.ended(records, end)
        statistics.written_whole(whole)
        yield whole
