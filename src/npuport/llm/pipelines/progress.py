"""How far a stage is, seen by another process: each task has a file that grows by a byte for each MiB of its input."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from npuport.llm.pipelines.shards import Shard

_UNIT = 1 << 20


def units(shards: Iterable[Shard]) -> int:
    """The size that the files of a stage have when it is complete."""
    return sum(math.ceil(shard.size / _UNIT) for shard in shards)


def done(folder: Path) -> int:
    """The size that the files of a stage have now."""
    return sum(path.stat().st_size for path in folder.glob("*"))


class Meter:
    """Grows the file of one task."""

    def __init__(self, folder: Path, rank: int, shard: Shard) -> None:
        self._stream = (folder / f"{rank:05d}").open("wb", buffering=0)
        self._whole, self._written, self._bytes = units([shard]), 0, 0

    def passed(self, size: int) -> None:
        """So many bytes of input more are done."""
        self._bytes += size
        self._grow(min(self._bytes // _UNIT, self._whole))

    def close(self) -> None:
        """All is done."""
        self._grow(self._whole)
        self._stream.close()

    def _grow(self, size: int) -> None:
        if size > self._written:
            self._stream.write(b"." * (size - self._written))
            self._written = size
