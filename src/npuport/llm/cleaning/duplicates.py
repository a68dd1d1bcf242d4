"""Texts that are there twice, letter for letter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
from numpy.typing import NDArray

_PART = 32 << 30  # bytes of input whose hashes are sorted together
_SURVIVOR = np.dtype([("number", "<u4"), ("high", "<u8"), ("low", "<u8")])
Groups = NDArray[np.int64]
"""[n, 4]: shard and number of a text, shard and number of the first of its group."""


def parts_of(size: int) -> int:
    """In how many tasks duplicates of so many bytes are found."""
    return 1 + size // _PART


class Survivors(PipelineStep):
    """Notes which texts passed all judges, with 128 bits of each; white space does not count."""

    type, name = "DEDUP", "survivors"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def run(self, data: Any, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        found = []
        for document in data:
            digest = hashlib.blake2b(" ".join(document.text.split()).encode(), digest_size=16).digest()
            found.append((int(document.id), *(int.from_bytes(digest[at : at + 8], "little") for at in (0, 8))))
            yield document
        np.save(self.folder / f"{rank:05d}.npy", np.array(found, dtype=_SURVIVOR))


def numbers_of(folder: Path, shard: int) -> NDArray[np.uint32]:
    """The numbers of the texts of a shard that passed, in order."""
    numbers: NDArray[np.uint32] = np.load(folder / f"{shard:05d}.npy")["number"]
    return numbers


class Duplicates(PipelineStep):
    """Finds the texts whose hash an earlier one has; each task looks at a share of all hashes."""

    type, name = "DEDUP", "exact duplicates"

    def __init__(self, survivors: Path, output: Path, shards: int) -> None:
        super().__init__()
        self.survivors, self.output, self.shards = survivors, output, shards

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        shards, rows = [], []
        for shard in range(self.shards):
            found = np.load(self.survivors / f"{shard:05d}.npy")
            own = found[found["high"] % np.uint64(world_size) == rank]
            rows.append(own)
            shards.append(np.full(len(own), shard, dtype=np.int64))
        shard_of, all_rows = np.concatenate(shards), np.concatenate(rows)
        # Stable: among equal hashes the first text stays first.
        order = np.lexsort((all_rows["low"], all_rows["high"]))
        high, low = all_rows["high"][order], all_rows["low"][order]
        again = np.zeros(len(order), dtype=np.bool_)
        again[1:] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        first = order[np.maximum.accumulate(np.where(again, 0, np.arange(len(order))))]
        places = np.stack([shard_of, all_rows["number"].astype(np.int64)], axis=1)
        groups: Groups = np.concatenate([places[order][again], places[first][again]], axis=1)
        np.save(self.output / f"{rank:05d}.npy", groups)
        self.stat_update("dropped", value=len(groups))
