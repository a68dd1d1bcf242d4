"""The records of a shard, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet

from npuport.errors import UserError
from npuport.llm.pipelines.shards import Shard

_BATCH = 1_000  # rows of Parquet that are read at once


@dataclass(frozen=True, slots=True)
class Record:
    """Line or row ``number`` of a shard, from 0.

    ``line`` holds the bytes of JSONL; ``fields`` is None where that is no JSON object.
    """

    number: int
    fields: dict[str, Any] | None
    line: bytes = b""

    @property
    def blank(self) -> bool:
        """Whether it is an empty line, which is no record."""
        return self.fields is None and not self.line

    @property
    def bytes_as_json(self) -> bytes:
        """One line of JSON without its end: what stood there, or what a row is in JSON."""
        return self.line or msgspec.json.encode(self.fields, enc_hook=str)


def records_of(shard: Shard) -> Iterator[Record]:
    """The lines or rows of a shard, blank ones included.

    Raises:
        UserError: the file cannot be read.
    """
    try:
        yield from _rows(shard) if shard.parquet else _lines(shard)
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=shard.path, reason=error.strerror or error) from error
    except pa.ArrowInvalid as error:
        raise UserError("{path} cannot be read: {reason}.", path=shard.path, reason=error) from error


def _lines(shard: Shard) -> Iterator[Record]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for number, line in enumerate(_raw_lines(shard)):
        if not line:
            yield Record(number, None)
            continue
        try:
            yield Record(number, decode(line), line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            yield Record(number, None, line)


def _raw_lines(shard: Shard) -> Iterator[bytes]:
    """The lines that begin in the shard, without their ends."""
    if shard.stop < 0:
        with pa.input_stream(shard.path) as compressed:
            yield from (line.strip() for line in _split(compressed))
        return
    with Path(shard.path).open("rb") as stream:
        if shard.start:
            # The line before belongs to the shard before, also where it ends with this one's first byte.
            stream.seek(shard.start - 1)
            stream.readline()
        while stream.tell() < shard.stop and (line := stream.readline()):
            yield line.strip()


def _split(stream: pa.NativeFile) -> Iterator[bytes]:
    rest = b""
    while piece := cast("bytes", stream.read(1 << 20)):
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _rows(shard: Shard) -> Iterator[Record]:
    numbers = itertools.count()
    for batch in batches_of(shard):
        for fields in batch.to_pylist():
            yield Record(next(numbers), fields)


def batches_of(shard: Shard) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet shard as they are."""
    with pyarrow.parquet.ParquetFile(shard.path) as file:
        yield from file.iter_batches(batch_size=_BATCH, row_groups=range(shard.start, shard.stop))
