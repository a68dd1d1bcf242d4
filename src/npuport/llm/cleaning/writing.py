"""The last stages: what is kept and what is dropped is written, counted and shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from datatrove.pipeline.base import PipelineStep

from npuport.errors import UserError
from npuport.llm.cleaning.verdicts import Verdict, notes_of, rows_of
from npuport.llm.pipelines.executors import end_with_parent
from npuport.llm.pipelines.folder import Folder, discard, show, write_json
from npuport.llm.pipelines.outputs import Lines, Table
from npuport.llm.pipelines.progress import Meter
from npuport.llm.pipelines.records import Record, records_of
from npuport.llm.pipelines.shards import Shard
from npuport.llm.pipelines.tables import read_schema


class Dropped(msgspec.Struct, omit_defaults=True):
    """A line of ``dropped/*.jsonl``; ``of`` is the record that a duplicate repeats."""

    place: str
    reason: str
    record: msgspec.Raw | None = None
    line: str | None = None  # of what is no JSON object
    measured: float | None = None
    limit: float | None = None
    piece: str = ""
    of: str = ""


class Write(PipelineStep):
    """Writes each record of a shard to what is kept, as it stood there, or to what is dropped."""

    type, name = "WRITER", "kept and dropped"

    def __init__(self, folder: Folder, shards: list[Shard], parquet: bool, limit: float) -> None:
        super().__init__()
        self.folder, self.shards, self.parquet, self.limit = folder, shards, parquet, limit

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        end_with_parent()
        shard = self.shards[rank]
        places = Places(self.folder.part("verdicts"), self.shards)
        verdicts = {one.number: one for one in notes_of(self.folder.part("verdicts"), rank).dropped}
        repeated = dict(self._repeated(rank))
        meter = Meter(self.folder.part("progress/write"), rank, shard)
        counts: Counter[str] = Counter()
        with ExitStack() as stack:
            kept = self._kept(rank, stack)
            dropped = Lines(self.folder.part("dropped") / f"{rank:05d}.jsonl", stack)
            for record in records_of(shard):
                if record.blank:
                    continue
                line = record.bytes_as_json
                meter.passed(len(line))
                verdict = verdicts.get(record.number)
                of = ""
                if verdict is None and record.number in repeated:
                    verdict, (first_shard, first) = repeated[record.number]
                    of = places.of(first_shard, first)
                if verdict is None:
                    kept.write(record, line)
                    counts["kept"] += 1
                    counts["bytes"] += len(line) + 1
                    continue
                counts[f"dropped {verdict.reason}"] += 1
                dropped.write_line(_line_of(record, line, verdict, places.of(rank, record.number), of))
        meter.close()
        write_json(self.folder.part("counts") / f"{rank:05d}.json", counts)

    def _repeated(self, rank: int) -> Iterator[tuple[int, tuple[Verdict, tuple[int, int]]]]:
        """Duplicates of the shard: the number, why, and which text was there before. Exact ones come last and win."""
        near = self.folder.part("near")
        if (near / "groups.npy").exists():
            groups, similar = np.load(near / "groups.npy"), np.load(near / "similarities.npy")
            own = groups[:, 0] == rank
            for (_, number, *first), share in zip(groups[own].tolist(), similar[own].tolist(), strict=True):
                yield number, (Verdict(number, "near-duplicate", round(share, 4), self.limit, ""), (first[0], first[1]))
        for part in sorted(self.folder.part("duplicates").glob("*.npy")):
            groups = np.load(part)
            for _, number, *first in groups[groups[:, 0] == rank].tolist():
                yield number, (Verdict(number, "duplicate", None, None, ""), (first[0], first[1]))

    def _kept(self, rank: int, stack: ExitStack) -> Lines | Table:
        folder = self.folder.part("kept")
        if self.parquet:
            return stack.enter_context(Table(folder / f"{rank:05d}.parquet", read_schema(self.folder)))
        return Lines(folder / f"{rank:05d}.jsonl", stack)


def _line_of(record: Record, line: bytes, verdict: Verdict, place: str, of: str) -> bytes:
    known = record.fields is not None
    return msgspec.json.encode(
        Dropped(
            place=place,
            reason=verdict.reason,
            record=msgspec.Raw(line) if known else None,
            line=None if known else line.decode("utf-8", "replace"),
            measured=verdict.measured,
            limit=verdict.limit,
            piece=verdict.piece,
            of=of,
        )
    )


class Places:
    """Where records stand, for people: the file and the line or row, from 1."""

    def __init__(self, verdicts: Path, shards: list[Shard]) -> None:
        self._verdicts, self._shards = verdicts, shards
        self._before: dict[int, int] = {}

    def of(self, shard: int, number: int) -> str:
        return f"{self._shards[shard].path}:{self._rows_before(shard) + number + 1}"

    def _rows_before(self, shard: int) -> int:
        if shard not in self._before:
            path, first = self._shards[shard].path, shard
            while first and self._shards[first - 1].path == path:
                first -= 1
            self._before[shard] = sum(rows_of(self._verdicts, one) for one in range(first, shard))
        return self._before[shard]


class Finish(PipelineStep):
    """Adds up, checks that every record was kept or dropped, and shows the results."""

    type, name = "WRITER", "report"

    def __init__(self, folder: Folder, shards: list[Shard], about: Mapping[str, Any]) -> None:
        super().__init__()
        self.folder, self.shards, self.about = folder, shards, about

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        if self.folder.report() is None:  # else an earlier start ended right behind it
            show(self.folder, ("kept", "dropped"), self._report())
        discard(self.folder)

    def _report(self) -> dict[str, Any]:
        read = sum(notes_of(self.folder.part("verdicts"), one).records for one in range(len(self.shards)))
        counts: Counter[str] = Counter()
        for one in range(len(self.shards)):
            counts.update(msgspec.json.decode((self.folder.part("counts") / f"{one:05d}.json").read_bytes()))
        reasons = {
            name.removeprefix("dropped "): number for name, number in counts.items() if name.startswith("dropped ")
        }
        if read != counts["kept"] + sum(reasons.values()):
            raise UserError(
                "{read} records were read, but {kept} kept and {dropped} dropped: the input changed during the run.",
                read=read,
                kept=counts["kept"],
                dropped=sum(reasons.values()),
            )
        return {
            "version": 1,
            "records": read,
            "kept": counts["kept"],
            "dropped": sum(reasons.values()),
            "reasons": dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
            "bytes": {"read": sum(shard.size for shard in self.shards), "kept": counts["bytes"]},
            **self.about,
        }
