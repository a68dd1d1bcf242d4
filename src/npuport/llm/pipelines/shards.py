"""The input divided into pieces that tasks take, whatever the number of workers: so the output never depends on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet

from npuport.errors import UserError

_COMPRESSED = (".gz", ".zst", ".bz2")
_LINES = (".jsonl", ".json", ".ndjson")
# What stands beside the result in a folder of folder.py. Texts that were dropped are not to come back unasked.
_BESIDE_RESULTS = ("unfinished", "logs", "dropped", "report.json")


@dataclass(frozen=True)
class Shard:
    """A part of one file: bytes ``start`` to ``stop`` of lines, row groups ``start`` to ``stop`` of Parquet.

    A line belongs to the shard in which it begins. A compressed file is one shard, and ``stop`` is -1.
    """

    path: str
    start: int
    stop: int
    size: int  # bytes, compressed where the file is

    @property
    def parquet(self) -> bool:
        return self.path.endswith(".parquet")


def files_of(patterns: Sequence[str]) -> list[Path]:
    """The files that paths, folders and patterns name, in order; each once.

    Raises:
        UserError: one names nothing, or a file of another kind.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        files = list(_matching(pattern))
        if not files:
            raise UserError("{path}: there is no such file, nor a folder with JSONL or Parquet files.", path=pattern)
        for path in files:
            if not _readable(path):
                raise UserError("{path} is neither JSONL (.jsonl, .jsonl.gz, .jsonl.zst) nor Parquet.", path=path)
            found[path] = None
    return list(found)


def _matching(pattern: str) -> Iterator[Path]:
    path = Path(pattern)
    if path.is_dir():
        yield from _inside(path)
    elif path.is_file():
        yield path
    else:
        root = Path(path.anchor or ".")
        yield from sorted(root.glob(str(path.relative_to(root) if path.anchor else path)))


def _inside(folder: Path) -> Iterator[Path]:
    """Its files, in order; of a folder that cleaning or mixing wrote, those of its result alone."""
    beside = _BESIDE_RESULTS if (folder / "logs" / "run.json").is_file() else ()
    for path in sorted(folder.iterdir()):
        if path.name in beside:
            continue
        if path.is_dir() and not path.is_symlink():  # a link may lead back to where it stands
            yield from _inside(path)
        elif path.is_file() and _readable(path):
            yield path


def _readable(path: Path) -> bool:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    elif suffixes and suffixes[-1] == ".parquet":
        return True
    return bool(suffixes) and suffixes[-1] in _LINES


def shards_of(paths: Iterable[Path], size: int) -> list[Shard]:
    """The files in pieces of about ``size`` bytes.

    Raises:
        UserError: a file cannot be read.
    """
    try:
        return [shard for path in paths for shard in _of_file(path, size)]
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=error.filename, reason=error.strerror) from error


def _of_file(path: Path, size: int) -> Iterator[Shard]:
    total = path.stat().st_size
    if path.suffix == ".parquet":
        yield from _of_parquet(path, size)
    elif path.suffix in _COMPRESSED:
        yield Shard(str(path), 0, -1, total)
    else:
        _refuse_array(path)
        for start in range(0, total, size):
            stop = min(start + size, total)
            yield Shard(str(path), start, stop, stop - start)


def _refuse_array(path: Path) -> None:
    """Each of its lines would be a broken record."""
    with path.open("rb") as stream:
        if path.suffix == ".json" and stream.read(64).lstrip().startswith(b"["):
            raise UserError(
                "{path} is one JSON array, and a line for each record is needed: jq -c '.[]' FILE.json > FILE.jsonl",
                path=path,
            )


def _of_parquet(path: Path, size: int) -> Iterator[Shard]:
    try:
        metadata = pyarrow.parquet.read_metadata(path)
    except pyarrow.ArrowInvalid as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error) from error
    start, held = 0, 0
    for group in range(metadata.num_row_groups):
        held += metadata.row_group(group).total_byte_size
        if held >= size or group + 1 == metadata.num_row_groups:
            yield Shard(str(path), start, group + 1, held)
            start, held = group + 1, 0
