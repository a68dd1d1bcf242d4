"""Mixing from a pipeline file to a folder."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from npuport.errors import UserError
from npuport.llm.mixing.settings import Mixing
from npuport.llm.mixing.steps import Deal, Draw, Finish, Measure, Write, sizes_in
from npuport.llm.pipelines.executors import Executor, Stage, Started
from npuport.llm.pipelines.folder import Folder, held
from npuport.llm.pipelines.shards import Shard, files_of, shards_of
from npuport.llm.pipelines.tables import UniteColumns

_MEGABYTE = 1_000_000


def run(mixing: Mixing, started: Started) -> dict[str, Any] | None:
    """Mix the sources into a new folder, or go on with a run that was ended; its report, None where Slurm has it now.

    Raises:
        UserError: a source or a setting cannot be used, a source has too little, or the folder holds something else.
    """
    sources = {name: source for name, source in mixing.sources.items() if source.weight and source.max_epochs}
    if not sources:
        raise UserError("there is no source with a weight: name files, folders or patterns.")
    if not mixing.output:
        raise UserError("there is no output: name a new folder.")
    if mixing.unit == "tokens":
        if not mixing.tokenizer:
            raise UserError("the unit tokens takes a tokenizer.")
        sizes_in(mixing.unit, mixing.tokenizer)
    size = max(1, int(mixing.task_megabytes * _MEGABYTE))
    shards: list[Shard] = []
    source_of: list[int] = []
    most = 0.0
    for number, (name, source) in enumerate(sources.items()):
        if not source.inputs:
            raise UserError("the source {name} has no inputs.", name=name)
        own = shards_of(files_of(source.inputs), size)
        if not own:
            raise UserError("there is nothing in {paths}.", paths=", ".join(source.inputs))
        shards += own
        source_of += [number] * len(own)
        most += sum(shard.size for shard in own) * source.max_epochs
    files = max(1, math.ceil(most / size))
    folder = Folder(Path(mixing.output).resolve())
    settings = dataclasses.asdict(dataclasses.replace(mixing, output=""))
    del settings["executor"]
    with held(folder, settings, shards) as due:
        if due:
            parquet = mixing.format == "parquet"
            weights = [(name, source.weight, source.max_epochs) for name, source in sources.items()]
            measure = Measure(folder, shards, mixing.text, mixing.unit, mixing.tokenizer, parquet)
            for name in ("progress/measure", "progress/deal"):
                folder.part(name)
            stages = [
                Stage("measure", [measure], len(shards)),
                Stage("draw", [Draw(folder, weights, source_of, mixing.size, mixing.seed, files)], 1),
                *([Stage("columns", [UniteColumns(folder, len(shards))], 1)] if parquet else []),
                Stage("deal", [Deal(folder, shards)], len(shards)),
                Stage("write", [Write(folder, parquet)], files),
                Stage("report", [Finish(folder, files, settings)], 1),
            ]
            executor = Executor(mixing.executor.kind, mixing.executor.workers, mixing.executor.options)
            executor.run(stages, folder.logs, lambda stage: started(stage, shards, folder))
    return folder.report()
