"""The stages of a mixture as datatrove's steps: measure, draw, deal out, write, report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from datatrove.pipeline.base import PipelineStep
from numpy.typing import NDArray

from npuport.errors import UserError
from npuport.llm.mixing.drawing import Part, drawn, shares
from npuport.llm.pipelines.executors import end_with_parent
from npuport.llm.pipelines.folder import Folder, Refused, discard, show, write_json
from npuport.llm.pipelines.outputs import Lines, Table
from npuport.llm.pipelines.progress import Meter
from npuport.llm.pipelines.records import Record, records_of
from npuport.llm.pipelines.shards import Shard
from npuport.llm.pipelines.tables import COLUMNS, Columns, read_schema

_BATCH = 500  # texts that a tokenizer is given at once
Sizes = Callable[[list[str]], list[int]]


def sizes_in(unit: str, tokenizer: str) -> Sizes:
    """How large texts are, in documents, characters or tokens."""
    if unit == "documents":
        return lambda texts: [1] * len(texts)
    if unit == "characters":
        return lambda texts: list(map(len, texts))
    from npuport.llm.packing.encoding import load_tokenizer

    loaded: Any = load_tokenizer(tokenizer)
    return lambda texts: [len(ids) for ids in loaded(texts, add_special_tokens=False)["input_ids"]]


class Measure(PipelineStep):
    """Notes the size of each text of a shard."""

    type, name = "STATS", "sizes"

    def __init__(
        self, folder: Folder, shards: list[Shard], text: str, unit: str, tokenizer: str, parquet: bool
    ) -> None:
        super().__init__()
        self.folder, self.shards, self.text, self.parquet = folder, shards, text, parquet
        self.unit, self.tokenizer = unit, tokenizer

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        end_with_parent()
        shard, sizes_of = self.shards[rank], sizes_in(self.unit, self.tokenizer)
        meter = Meter(self.folder.part("progress/measure"), rank, shard)
        columns = Columns() if self.parquet else None
        numbers: list[int] = []
        sizes: list[int] = []
        waiting: list[str] = []
        for record in records_of(shard):
            if record.blank:
                continue
            waiting.append(self._text_of(record, shard))
            numbers.append(record.number)
            meter.passed(len(record.line) or len(waiting[-1]))
            if columns is not None and not shard.parquet:
                columns.add(record.fields or {})
            if len(waiting) == _BATCH:
                sizes += sizes_of(waiting)
                waiting = []
        sizes += sizes_of(waiting) if waiting else []
        if columns is not None:
            columns.save(shard, self.folder.part(COLUMNS) / f"{rank:05d}")
        np.save(self.folder.part("sizes") / f"{rank:05d}.npy", np.array([numbers, sizes], dtype=np.int64))
        meter.close()

    def _text_of(self, record: Record, shard: Shard) -> str:
        text = (record.fields or {}).get(self.text)
        if isinstance(text, str):
            return text
        raise Refused(
            "{path}: a record has no text in {field} (number {number} from its byte or row group {start}). "
            "npuport data clean drops such records.",
            path=shard.path,
            field=self.text,
            number=record.number,
            start=shard.start,
        )


class Draw(PipelineStep):
    """Decides which texts make the mixture, and tells each shard the places of its own.

    Args:
        sources: the name, weight and most epochs of each source.
        source_of: the source of each shard.
        files: in how many files of equal numbers of texts the mixture is written.
    """

    type, name = "MIX", "draw"

    def __init__(
        self,
        folder: Folder,
        sources: Sequence[tuple[str, float, float]],
        source_of: Sequence[int],
        wanted: int,
        seed: int,
        files: int,
    ) -> None:
        super().__init__()
        self.folder, self.sources, self.source_of = folder, sources, source_of
        self.wanted, self.seed, self.files = wanted, seed, files

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        measured = [np.load(self.folder.part("sizes") / f"{one:05d}.npy") for one in range(len(self.source_of))]
        own_shards = [
            [one for one, its in enumerate(self.source_of) if its == source] for source in range(len(self.sources))
        ]
        parts = [
            Part(name, weight, epochs, np.concatenate([measured[one][1] for one in own_shards[number]]))
            for number, (name, weight, epochs) in enumerate(self.sources)
        ]
        found = drawn(parts, self.wanted, self.seed)
        places = np.arange(len(found.part))
        for number, shards in enumerate(own_shards):
            mine = found.part == number
            self._tell(shards, [measured[one][0] for one in shards], found.text[mine], places[mine], len(places))
        write_json(self.folder.unfinished / "shares.json", shares(parts, found))

    def _tell(
        self,
        shards: Sequence[int],
        numbers: Sequence[NDArray[np.int64]],
        texts: NDArray[np.int64],
        places: NDArray[np.int64],
        whole: int,
    ) -> None:
        starts = np.cumsum([0, *map(len, numbers)])
        order = np.lexsort((places, texts))
        texts, places = texts[order], places[order]
        bounds = np.searchsorted(texts, starts)
        for at, shard in enumerate(shards):
            some = slice(bounds[at], bounds[at + 1])
            told = np.stack(
                [numbers[at][texts[some] - starts[at]], places[some], places[some] * self.files // max(1, whole)]
            )
            np.save(self.folder.part("places") / f"{shard:05d}.npy", told)


class Deal(PipelineStep):
    """Reads a shard once more, and deals its texts out to the files in which they have their places."""

    type, name = "MIX", "deal"

    def __init__(self, folder: Folder, shards: list[Shard]) -> None:
        super().__init__()
        self.folder, self.shards = folder, shards

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        end_with_parent()
        shard = self.shards[rank]
        meter = Meter(self.folder.part("progress/deal"), rank, shard)
        places = defaultdict(list)
        for number, place, file in np.load(self.folder.part("places") / f"{rank:05d}.npy").T.tolist():
            places[number].append((file, place))
        hands: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        for record in records_of(shard):
            meter.passed(len(record.line))
            for file, place in places.get(record.number, ()):
                hands[file].append((place, record.bytes_as_json))
        for file, hand in hands.items():
            path = self.folder.part(f"dealt/{file:05d}") / f"{rank:05d}.msgpack"
            path.write_bytes(msgspec.msgpack.encode(hand))
        meter.close()


class Write(PipelineStep):
    """Writes a file of the mixture: what was dealt to it, in order."""

    type, name = "WRITER", "mixed"

    def __init__(self, folder: Folder, parquet: bool) -> None:
        super().__init__()
        self.folder, self.parquet = folder, parquet

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        end_with_parent()
        hand: list[tuple[int, bytes]] = []
        for path in sorted(self.folder.part(f"dealt/{rank:05d}").glob("*.msgpack")):
            hand += msgspec.msgpack.decode(path.read_bytes(), type=list[tuple[int, bytes]])
        mixed = self.folder.part("mixed")
        with ExitStack() as stack:
            output = (
                stack.enter_context(Table(mixed / f"{rank:05d}.parquet", read_schema(self.folder)))
                if self.parquet
                else Lines(mixed / f"{rank:05d}.jsonl", stack)
            )
            for place, line in sorted(hand):
                output.write(Record(place, msgspec.json.decode(line) if self.parquet else None, line), line)
        write_json(self.folder.part("counts") / f"{rank:05d}.json", len(hand))


class Finish(PipelineStep):
    """Checks that every text that was drawn was written, and shows the mixture."""

    type, name = "WRITER", "report"

    def __init__(self, folder: Folder, files: int, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.folder, self.files, self.settings = folder, files, settings

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> None:
        if self.folder.report() is None:  # else an earlier start ended right behind it
            show(self.folder, ("mixed",), self._report())
        discard(self.folder)

    def _report(self) -> dict[str, Any]:
        drawn_: dict[str, dict[str, Any]] = msgspec.json.decode((self.folder.unfinished / "shares.json").read_bytes())
        documents = sum(one["documents"] for one in drawn_.values())
        written = sum(_number_in(self.folder.part("counts") / f"{file:05d}.json") for file in range(self.files))
        if documents != written:
            raise UserError(
                "{drawn} texts were drawn, but {written} written: the input changed during the run.",
                drawn=documents,
                written=written,
            )
        size = sum(one["size"] for one in drawn_.values())
        return {"version": 1, "documents": documents, "size": size, "sources": drawn_, "settings": self.settings}


def _number_in(path: Path) -> int:
    return msgspec.json.decode(path.read_bytes(), type=int)
