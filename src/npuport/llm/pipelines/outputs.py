"""Files of records that are there once they have one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet

from npuport.llm.pipelines.records import Record

_BATCH = 1_000


class Lines:
    """A file of JSONL."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        path.unlink(missing_ok=True)
        self._path, self._stack = path, stack
        self._stream: BinaryIO | None = None

    def write(self, _: Record, line: bytes) -> None:
        """A record, as its line."""
        self.write_line(line)

    def write_line(self, line: bytes) -> None:
        """A line without its end."""
        if self._stream is None:
            self._stream = self._stack.enter_context(self._path.open("wb"))
        self._stream.write(line + b"\n")


class Table:
    """A file of Parquet."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        path.unlink(missing_ok=True)
        self._path, self._schema = path, schema
        self._rows: list[Mapping[str, Any]] = []
        self._writer: pyarrow.parquet.ParquetWriter | None = None

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def write(self, record: Record, _: bytes) -> None:
        """A record, by its fields."""
        self._rows.append(record.fields or {})
        if len(self._rows) == _BATCH:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._path, self._schema)
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []
