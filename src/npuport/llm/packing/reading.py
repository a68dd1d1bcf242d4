"""Records of JSONL and Parquet files, in pieces that fit into memory, each with its place."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from npuport.errors import UserError
from npuport.llm.packing.ragged import Ragged

PIECE = 8_192  # records: dialogues are fitted within a piece, at a cost of one sample that is not full


@dataclass(frozen=True)
class Piece:
    """Records ``first``, ``first + 1``, … of all input; record i stands in ``path`` at ``line + i`` (from 1)."""

    path: Path
    line: int
    first: int
    records: Sequence[dict[str, Any]] | pa.RecordBatch

    def place(self, record: int) -> str:
        """Where a record stands, for people."""
        return f"{self.path}:{self.line + record - self.first}"

    def rows(self) -> Sequence[dict[str, Any]]:
        """The records as dictionaries."""
        if isinstance(self.records, pa.RecordBatch):
            rows: list[dict[str, Any]] = self.records.to_pylist()
            return rows
        return self.records


def pieces_of(paths: Iterable[Path], size: int = PIECE) -> Iterator[Piece]:
    """The records of the files, in order.

    Raises:
        UserError: a file cannot be read, or is neither JSONL nor Parquet.
    """
    first = 0
    for path in paths:
        for line, records in _named_errors(path, size):
            yield Piece(path, line, first, records)
            first += len(records)


def _named_errors(path: Path, size: int) -> Iterator[tuple[int, Any]]:
    try:
        yield from (_parquet if path.suffix == ".parquet" else _lines)(path, size)
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error.strerror or error) from error
    except pa.ArrowInvalid as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error) from error


def _lines(path: Path, size: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode

    def record(number: int, line: bytes) -> dict[str, Any]:
        try:
            return decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UserError(
                "{path}, line {line} is not a JSON object: {reason}. Each line is one record.",
                path=path,
                line=number,
                reason=error,
            ) from error

    with path.open("rb") as stream:
        numbered = enumerate(stream, 1)
        while some := list(itertools.islice(numbered, size)):
            yield some[0][0], list(itertools.starmap(record, some))


def _parquet(path: Path, size: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    with pyarrow.parquet.ParquetFile(path) as file:
        line = 1
        for batch in file.iter_batches(batch_size=size):
            yield line, batch
            line += len(batch)


def given_ids(batch: pa.RecordBatch, ids: str, labels: str | None, first: int) -> Ragged | None:
    """Token ids that a Parquet column holds, without a Python object for each; None where one is wrong or missing.

    Args:
        labels: a column as long as ``ids``, negative where the loss counts nothing, elsewhere the same; None: every
            token counts.
    """
    column = batch.column(ids)
    mask = batch.column(labels) if labels else None
    if any(one.null_count or not _is_list(one) for one in (column, mask) if one is not None):
        return None
    # A list array's offsets point into all of its values, also when it is a part of a longer array.
    offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    try:
        tokens = _values(column, offsets)
        learned = np.ones(len(tokens), dtype=np.bool_)
        if mask is not None:
            mask_offsets = mask.offsets.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
            if not np.array_equal(np.diff(mask_offsets), np.diff(offsets)):
                return None
            wanted = _values(mask, mask_offsets)
            learned = wanted >= 0
            if np.any(learned & (wanted != tokens)):
                return None
    except pa.ArrowInvalid:  # missing ones, or larger ones than 32 bits hold
        return None
    return Ragged(tokens, learned, offsets - offsets[0], np.arange(first, first + len(batch), dtype=np.int64))


def _is_list(column: pa.Array) -> bool:
    kind = column.type
    return bool((pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_integer(kind.value_type))


def _values(column: pa.Array, offsets: Any) -> Any:
    values = column.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return values.cast(pa.int32()).to_numpy()
