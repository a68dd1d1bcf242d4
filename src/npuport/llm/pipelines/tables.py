"""Records as Parquet: columns that suit all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from datatrove.pipeline.base import PipelineStep

from npuport.llm.pipelines.folder import Folder, Refused
from npuport.llm.pipelines.shards import Shard

COLUMNS = "columns-of-shards"
_UNITED = "columns"
_BATCH = 1_000


class Columns:
    """Gathers the schema of records that have none of their own."""

    def __init__(self) -> None:
        self._schema = pa.schema([])
        self._waiting: list[dict[str, Any]] = []

    def add(self, fields: dict[str, Any]) -> None:
        """A record more."""
        self._waiting.append(fields)
        if len(self._waiting) == _BATCH:
            self._take()

    def _take(self) -> None:
        self._schema = _unified([self._schema, schema_of_rows(self._waiting)])
        self._waiting = []

    def save(self, shard: Shard, path: Path) -> None:
        """Write the schema of a shard: its own, or that of the records given."""
        if shard.parquet:
            schema = pyarrow.parquet.read_schema(shard.path)
        else:
            self._take()
            schema = self._schema
        path.write_bytes(schema.remove_metadata().serialize().to_pybytes())


class UniteColumns(PipelineStep):
    """Makes one schema for all shards, from what `Columns` saved of each."""

    type, name = "WRITER", "columns"

    def __init__(self, folder: Folder, shards: int) -> None:
        super().__init__()
        self.folder, self.shards = folder, shards

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        paths = [self.folder.part(COLUMNS) / f"{shard:05d}" for shard in range(self.shards)]
        schemas = [pa.ipc.read_schema(pa.py_buffer(path.read_bytes())) for path in paths]
        (self.folder.unfinished / _UNITED).write_bytes(_unified(schemas).serialize().to_pybytes())


def read_schema(folder: Folder) -> pa.Schema:
    """What `UniteColumns` made."""
    return pa.ipc.read_schema(pa.py_buffer((folder.unfinished / _UNITED).read_bytes()))


def schema_of_rows(rows: list[dict[str, Any]]) -> pa.Schema:
    """The columns that hold these records.

    Raises:
        Refused: a field holds values of several kinds.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    try:
        return pa.schema([(name, pa.array([row.get(name) for row in rows]).type) for name in names])
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise _no_columns(error) from error


def _unified(schemas: list[pa.Schema]) -> pa.Schema:
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise _no_columns(error) from error


def _no_columns(error: Exception) -> Refused:
    return Refused("the records have no common columns for Parquet ({reason}): write the format jsonl.", reason=error)
