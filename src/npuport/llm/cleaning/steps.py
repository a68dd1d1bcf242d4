"""The steps of the judging stage as datatrove's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.filters.base_filter import BaseFilter

from npuport.llm.cleaning.judges import Judge
from npuport.llm.cleaning.verdicts import Objection, Verdicts
from npuport.llm.pipelines.executors import end_with_parent
from npuport.llm.pipelines.progress import Meter
from npuport.llm.pipelines.records import Record, records_of
from npuport.llm.pipelines.shards import Shard
from npuport.llm.pipelines.tables import Columns


class Read(PipelineStep):
    """Gives the texts of a shard; what has none is dropped here, with its reason.

    Args:
        columns: a folder for the schema of the records, where they are to become Parquet.
    """

    type, name = "READER", "records"

    def __init__(self, shards: list[Shard], text: str, verdicts: Verdicts, meters: Path, columns: Path | None) -> None:
        super().__init__()
        self.shards, self.text, self.verdicts, self.meters, self.columns = shards, text, verdicts, meters, columns

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        end_with_parent()
        shard, rows, seen = self.shards[rank], 0, 0
        columns = Columns() if self.columns else None
        meter = Meter(self.meters, rank, shard)
        for record in records_of(shard):
            rows += 1
            if record.blank:
                continue
            seen += 1
            if columns is not None and record.fields is not None and not shard.parquet:
                columns.add(record.fields)
            text = (record.fields or {}).get(self.text)
            objection = _without_text(record, self.text)
            if objection is not None or not isinstance(text, str):
                self.verdicts.add(record.number, objection or Objection("no-text"))
                continue
            meter.passed(len(record.line) or len(text))
            self.stat_update("total")
            yield Document(text, str(record.number))
        self.verdicts.save(rank, rows, seen)
        if columns is not None and self.columns is not None:
            columns.save(shard, self.columns / f"{rank:05d}")
        meter.close()


def _without_text(record: Record, field: str) -> Objection | None:
    if record.fields is None:
        return Objection("not-json", piece=record.line[:80].decode("utf-8", "replace"))
    text = record.fields.get(field)
    if isinstance(text, str) and text.strip():
        return None
    return Objection("no-text", piece=", ".join(record.fields))


class Judged(BaseFilter):
    """Drops the texts to which a judge objects.

    Args:
        make: gives the judge; called in the task, which may have to load something for it.
    """

    def __init__(self, name: str, make: Callable[[], Judge], verdicts: Verdicts) -> None:
        self.name = name
        super().__init__(verdicts)
        self.make = make
        self.judge: Judge | None = None

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        if self.judge is None:
            self.judge = self.make()
        objection = self.judge(doc.text)
        if objection is None:
            return True
        doc.metadata["objection"] = objection
        return False, objection.reason
