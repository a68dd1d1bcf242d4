"""Megatron's and MindSpeed's indexed data sets: NAME.bin with the tokens, NAME.idx with where each sequence stands.

The format, from megatron-core 0.16.1 (core/datasets/indexed_dataset.py), all little-endian: 9 bytes "MMIDIDX", 0, 0;
the version 1 (uint64), the code of the tokens' type (uint8), the numbers of sequences and of document ends (each
uint64), the sequences' lengths (int32), their places in the .bin in bytes (int64), the document ends (int64).
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from npuport.llm.packing.ragged import Ragged
from npuport.llm.packing.samples import Samples

_HEADER = b"MMIDIDX\x00\x00"
_INT32 = 4  # megatron-core's DType.int32


class IndexedWriter:
    """Writes one indexed data set of int32 tokens; every sequence is a document."""

    def __init__(self, prefix: Path) -> None:
        self._index = prefix.with_name(prefix.name + ".idx")
        self._stream = prefix.with_name(prefix.name + ".bin").open("wb")
        self._lengths: list[Any] = []

    def add(self, tokens: Any, lengths: Any) -> None:
        """Sequences end to end, and how many tokens each has."""
        self._stream.write(np.ascontiguousarray(tokens, dtype="<i4").data)
        self._lengths.append(np.asarray(lengths, dtype=np.int64))

    def __enter__(self) -> IndexedWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stream.close()
        if kind is not None:
            return
        lengths = np.concatenate([np.empty(0, dtype=np.int64), *self._lengths])
        places = (np.cumsum(lengths) - lengths) * 4
        with self._index.open("wb") as stream:
            stream.write(_HEADER + struct.pack("<QBQQ", 1, _INT32, len(lengths), len(lengths) + 1))
            stream.write(lengths.astype("<i4").tobytes())
            stream.write(places.astype("<i8").tobytes())
            stream.write(np.arange(len(lengths) + 1, dtype="<i8").tobytes())


def write_samples(batches: Iterable[Samples], folder: Path, name: str) -> None:
    """Fine-tuning, as MindSpeed-LLM's packed instruction data: --data-path takes folder/name.

    Its attention mask holds the number of the dialogue, from 1, and 0 for padding: what --neat-pack reads.
    """
    fields = {"input_ids": "input_ids", "labels": "labels", "attention_mask": "sequence_ids"}
    with contextlib.ExitStack() as stack:
        writers = {
            attribute: stack.enter_context(IndexedWriter(folder / f"{name}_packed_{field}_document"))
            for field, attribute in fields.items()
        }
        for samples in batches:
            lengths = np.full(len(samples), samples.input_ids.shape[1], dtype=np.int64)
            for attribute, writer in writers.items():
                writer.add(getattr(samples, attribute), lengths)


def write_documents(batches: Iterable[Ragged], folder: Path, name: str) -> None:
    """Pretraining: whole documents. Megatron joins and cuts them itself, for the sequence length of the training."""
    with IndexedWriter(folder / f"{name}_text_document") as writer:
        for documents in batches:
            writer.add(documents.tokens, documents.lengths)


def read(prefix: Path) -> Sequence[Any]:
    """The sequences of an indexed data set of any of megatron-core's types, mapped and not loaded.

    Raises:
        ValueError: that is no such file, or one of another version.
    """
    index = prefix.with_name(prefix.name + ".idx").read_bytes()
    if not index.startswith(_HEADER) or len(index) < 34:
        raise ValueError("it does not begin with MMIDIDX")
    version, code, number, _ = struct.unpack_from("<QBQQ", index, 9)
    kind = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}.get(code)
    if version != 1 or kind is None:
        raise ValueError(f"version {version}, type {code}")
    lengths = np.frombuffer(index, dtype="<i4", count=number, offset=34)
    places = np.frombuffer(index, dtype="<i8", count=number, offset=34 + 4 * number)
    tokens = np.memmap(prefix.with_name(prefix.name + ".bin"), mode="r") if lengths.sum() else np.empty(0, dtype="u1")
    size = np.dtype(kind).itemsize
    return [
        tokens[place : place + length * size].view(kind)
        for place, length in zip(places.tolist(), lengths.tolist(), strict=True)
    ]
