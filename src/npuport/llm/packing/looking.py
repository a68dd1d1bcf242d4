"""Reads packed samples back, for a person to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from npuport.errors import UserError
from npuport.llm.packing import megatron


@dataclass(frozen=True)
class Segment:
    """One dialogue of a sample, or its padding: tokens ``begin`` to ``end``.

    ``record`` is its number in the input, -1 where the file does not say; ``learned`` [end - begin] says which tokens
    the loss counts, ``positions`` holds the first and the last position id, None where the file has none.
    """

    begin: int
    end: int
    padding: bool
    record: int
    tokens: Sequence[int]
    learned: Sequence[bool]
    positions: tuple[int, int] | None


def samples_in(path: Path) -> Iterator[list[Segment]]:
    """The samples of what `npuport data pack` wrote: its folder, or one of its files.

    Raises:
        UserError: there is nothing of that kind.
    """
    try:
        yield from _rows_of(path)
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error.strerror or error) from error
    except (ValueError, KeyError, pa.ArrowInvalid) as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error) from error


def _rows_of(path: Path) -> Iterator[list[Segment]]:
    if path.suffix == ".arrow" or (path.is_dir() and (path / "state.json").exists()):
        files = [path] if path.is_file() else sorted(path.glob("*.arrow"))
        for file in files:
            yield from _arrow(file)
    elif path.suffix == ".pt" or (path / "samples.pt").exists():
        yield from _tensors(path if path.is_file() else path / "samples.pt")
    elif indexes := [path] if path.suffix in (".bin", ".idx") else sorted(path.glob("*.idx")):
        index = indexes[0].with_suffix(".idx")
        prefix, packed, _ = index.name.rpartition("_packed_")
        if packed:
            yield from _packed(index.parent, prefix)
            return
        for tokens in megatron.read(index.with_suffix("")):
            yield [Segment(0, len(tokens), False, -1, tokens.tolist(), [True] * len(tokens), None)]
    else:
        raise UserError("{path} holds no samples that npuport data pack wrote.", path=path)


def _arrow(path: Path) -> Iterator[list[Segment]]:
    with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
        rows = (row for batch in reader for row in batch.to_pylist())
        for number, row in enumerate(rows):
            yield _segments(row, first=number == 0)


def _tensors(path: Path) -> Iterator[list[Segment]]:
    from npuport.llm.packing.torch_file import read

    for number, row in enumerate(read(path)):
        yield _segments(row, first=number == 0)


def _packed(folder: Path, prefix: str) -> Iterator[list[Segment]]:
    fields = ("input_ids", "labels", "attention_mask")
    columns = [megatron.read(folder / f"{prefix}_packed_{field}_document") for field in fields]
    for tokens, labels, numbers in zip(*columns, strict=True):
        ends = np.append(np.flatnonzero(np.diff(numbers)) + 1, len(numbers))
        bounds = {"sequence_ids": numbers, "actual_seq_qlen": ends.tolist()}
        yield _segments({"input_ids": tokens, "labels": labels, **bounds}, first=False)


def _segments(row: dict[str, Any], *, first: bool) -> list[Segment]:
    """The segments of a sample; ``first``: no other stands before it."""
    found, begin = [], 0
    for place, end in enumerate(row["actual_seq_qlen"]):
        positions = row.get("position_ids")
        padding = row["sequence_ids"][begin] == 0
        learned = [bool(label >= 0) for label in row["labels"][begin:end]]
        if "shift_labels" in row and first and begin == 0:
            learned[0] = False  # that of a later sample is learned at the end of the one before
        found.append(
            Segment(
                begin=begin,
                end=end,
                padding=bool(padding),
                record=row["records"][place] if "records" in row else -1,
                tokens=[int(token) for token in row["input_ids"][begin:end]],
                learned=learned,
                positions=None if positions is None else (positions[begin], positions[end - 1]),
            )
        )
        begin = end
    return found
