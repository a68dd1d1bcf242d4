"""Samples as a data set of Hugging Face `datasets`: a folder that `datasets.load_from_disk` reads."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from npuport.llm.packing.ragged import Offsets
from npuport.llm.packing.samples import Samples

_FILE = "data-00000-of-00001.arrow"
ROWS = 256  # of one record batch, so that reading one sample reads little


def columns_of(samples: Samples) -> dict[str, pa.Array]:
    """One list for each sample in each column."""
    columns = {
        "input_ids": _rows(samples.input_ids),
        "labels": _rows(samples.labels),
        "position_ids": _rows(samples.position_ids),
        "sequence_ids": _rows(samples.sequence_ids),
        "actual_seq_qlen": _lists(samples.ends, samples.ends_offsets),
        "records": _lists(samples.records, samples.ends_offsets),
    }
    if samples.shift_labels is not None:
        columns["shift_labels"] = _rows(samples.shift_labels)
    return columns


def _rows(values: Any) -> pa.Array:
    number, length = values.shape
    return _lists(values.reshape(-1), np.arange(number + 1, dtype=np.int64) * length)


def _lists(values: Any, offsets: Offsets) -> pa.Array:
    # 32-bit offsets, as `datasets` writes lists.
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(np.ascontiguousarray(values)))


def write(batches: Iterable[Samples], folder: Path) -> None:
    """The samples into a folder that exists and is empty."""
    batches = iter(batches)
    first = next(batches)
    columns = columns_of(first)
    features = {name: _feature(column.type) for name, column in columns.items()}
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    schema = pa.schema([pa.field(name, column.type) for name, column in columns.items()], metadata=about)
    with pa.OSFile(str(folder / _FILE), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for samples in itertools.chain([first], batches):
            table = pa.Table.from_arrays(list(columns_of(samples).values()), schema=schema)
            writer.write_table(table, max_chunksize=ROWS)
    state: dict[str, Any] = {
        "_data_files": [{"filename": _FILE}],
        "_fingerprint": uuid.uuid4().hex[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    information = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    for name, content in (("state.json", state), ("dataset_info.json", information)):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _feature(kind: pa.DataType) -> dict[str, Any]:
    # "Sequence" is the name that every release of `datasets` knows for a list.
    return {"feature": {"dtype": str(kind.value_type), "_type": "Value"}, "_type": "Sequence"}
