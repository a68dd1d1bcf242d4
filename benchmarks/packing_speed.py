"""Claim: npuport packs dialogues of token ids at least three times as fast as `datasets.map` does the same work.

    python benchmarks/packing_speed.py [--dialogues 100000] [--max-length 4096]

Dialogues of log-normal lengths in a Parquet file, ids and labels; out come Arrow samples with ids, labels, positions
and bounds. All three fit by the same rule and write Arrow: npuport's own code; a plain Python loop over records; and
`datasets.map(batched=True)` in one process, whose function is that same loop, on batches as large as npuport's.
Prints tokens per second of CPU time of each, and checks that the loop gives the very samples of npuport.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from npuport.llm.packing.encoding import encode_texts
from npuport.llm.packing.fitting import best_fit
from npuport.llm.packing.job import Job, run
from npuport.llm.packing.reading import PIECE

COLUMNS = ("input_ids", "labels", "position_ids", "sequence_ids", "actual_seq_qlen")


def write_dialogues(path: Path, number: int, max_length: int) -> int:
    """A Parquet file of dialogues; its tokens."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.lognormal(6, 0.8, number), 8, max_length).astype(np.int64)
    tokens = generator.integers(1, 32_000, int(lengths.sum()), dtype=np.int32)
    labels = np.where(generator.random(len(tokens)) < 0.5, tokens, np.int32(-100))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    columns = {
        name: pa.ListArray.from_arrays(offsets, values) for name, values in (("input_ids", tokens), ("labels", labels))
    }
    pq.write_table(pa.table(columns), path)
    return len(tokens)


def packed_by_loop(ids: list[list[int]], labels: list[list[int]], max_length: int) -> dict[str, list[list[int]]]:
    """What a person writes: lists that grow by a dialogue at a time."""
    sample_of = best_fit(np.array([len(row) for row in ids]), max_length).tolist()
    members: list[list[int]] = [[] for _ in range(max(sample_of, default=-1) + 1)]
    for dialogue, sample in enumerate(sample_of):
        members[sample].append(dialogue)
    out: dict[str, list[list[int]]] = {name: [] for name in COLUMNS}
    for dialogues in members:
        row: dict[str, list[int]] = {name: [] for name in COLUMNS}
        for number, dialogue in enumerate(dialogues, 1):
            length = len(ids[dialogue])
            row["input_ids"] += ids[dialogue]
            row["labels"] += [-100, *labels[dialogue][1:]]
            row["position_ids"] += range(length)
            row["sequence_ids"] += [number] * length
            row["actual_seq_qlen"].append(len(row["input_ids"]))
        room = max_length - len(row["input_ids"])
        row["input_ids"] += [0] * room
        row["labels"] += [-100] * room
        row["position_ids"] += range(room)
        row["sequence_ids"] += [0] * room
        if room:
            row["actual_seq_qlen"].append(max_length)
        for name in COLUMNS:
            out[name].append(row[name])
    return out


def by_loop(source: Path, output: Path, max_length: int) -> float:
    started = time.process_time()
    with pa.OSFile(str(output), "wb") as sink:
        writer = None
        for batch in pq.ParquetFile(source).iter_batches(batch_size=PIECE):
            columns = batch.to_pydict()
            kinds = {name: pa.list_(pa.int64() if name == "actual_seq_qlen" else pa.int32()) for name in COLUMNS}
            packed = packed_by_loop(columns["input_ids"], columns["labels"], max_length)
            table = pa.table({name: pa.array(packed[name], type=kinds[name]) for name in COLUMNS})
            writer = writer or pa.ipc.new_stream(sink, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
    return started


def by_map(source: Path, output: Path, max_length: int) -> float:
    """Copying Parquet into its own cache is not the work of datasets.map."""
    rows = datasets.Dataset.from_parquet(str(source), cache_dir=str(output.parent / "cache"))

    def pack(batch: dict[str, Any]) -> dict[str, list[list[int]]]:
        return packed_by_loop(batch["input_ids"], batch["labels"], max_length)

    started = time.process_time()
    rows.map(pack, batched=True, batch_size=PIECE, remove_columns=rows.column_names, cache_file_name=str(output))
    return started


def by_npuport(source: Path, output: Path, max_length: int) -> float:
    started = time.process_time()
    run(
        Job([source], field="input_ids", labels="labels", encode=encode_texts(None), max_length=max_length, pad=0),
        output,
    )
    return started


def seconds(work: Callable[[Path, Path, int], float], source: Path, output: Path, max_length: int) -> float:
    """CPU time, which other programs on the machine do not change. ``work`` tells when it began what is measured."""
    started = work(source, output, max_length)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialogues", type=int, default=100_000)
    parser.add_argument("--max-length", type=int, default=4096)
    arguments = parser.parse_args()
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = folder / "dialogues.parquet"
        tokens = write_dialogues(source, arguments.dialogues, arguments.max_length)
        print(f"{arguments.dialogues:,} dialogues, {tokens:,} tokens, samples of {arguments.max_length:,}")
        taken = {}
        for name, work in (("npuport", by_npuport), ("plain loop", by_loop), ("datasets.map", by_map)):
            taken[name] = seconds(work, source, folder / name.replace(" ", "-"), arguments.max_length)
            print(f"{name:14}{taken[name]:8.2f} s CPU {tokens / taken[name] / 1e6:8.1f} M tokens/s")
        ours = datasets.load_from_disk(str(folder / "npuport")).data.table.select(COLUMNS)
        theirs = pa.ipc.open_stream(pa.memory_map(str(folder / "plain-loop"))).read_all()
        same = all(ours[name].combine_chunks().equals(theirs[name].combine_chunks()) for name in COLUMNS)
        print(f"the same samples: {'yes' if same else 'NO'}")
        print(f"npuport is {taken['datasets.map'] / taken['npuport']:.1f} times as fast as datasets.map")
        raise SystemExit(not same or taken["datasets.map"] < 3 * taken["npuport"])


if __name__ == "__main__":
    main()
