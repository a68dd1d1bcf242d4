"""Cleaning from a pipeline file to a folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from datatrove.pipeline.base import PipelineStep

from npuport.errors import UserError
from npuport.findings import say
from npuport.llm.cleaning import contamination, duplicates, judges, language, near, perplexity, words
from npuport.llm.cleaning.judges import Judge
from npuport.llm.cleaning.repetition import Repetition
from npuport.llm.cleaning.settings import Cleaning, Steps
from npuport.llm.cleaning.steps import Judged, Read
from npuport.llm.cleaning.verdicts import Verdicts
from npuport.llm.cleaning.writing import Finish, Write
from npuport.llm.pipelines.executors import Executor, Stage, Started
from npuport.llm.pipelines.folder import Folder, held
from npuport.llm.pipelines.shards import Shard, files_of, shards_of
from npuport.llm.pipelines.tables import COLUMNS, UniteColumns

_MEGABYTE = 1_000_000
INDEX = "tests.npz"


def not_run(steps: Steps) -> dict[str, str]:
    """The steps that are left out, and why."""
    missing = {
        "language": say("no languages to keep").template if steps.language and not steps.language.keep else "",
        "words": say("no word lists").template if steps.words and not steps.words.files else "",
        "contamination": say("no test sets").template if steps.contamination and not steps.contamination.tests else "",
        "perplexity": say("no model").template if steps.perplexity and not steps.perplexity.model else "",
    }
    off = {
        field.name.replace("_", "-"): say("switched off").template
        for field in dataclasses.fields(steps)
        if getattr(steps, field.name) is None
    }
    return off | {name: why for name, why in missing.items() if why}


def run(cleaning: Cleaning, started: Started) -> dict[str, Any] | None:
    """Clean the input into a new folder, or go on with a run that was ended; its report, None where Slurm has it now.

    Raises:
        UserError: an input or a setting cannot be used, the folder holds something else, or a task failed.
    """
    if not cleaning.inputs:
        raise UserError("there is no input: name files, folders or patterns.")
    if not cleaning.output:
        raise UserError("there is no output: name a new folder.")
    shards = shards_of(files_of(cleaning.inputs), max(1, int(cleaning.task_megabytes * _MEGABYTE)))
    if not shards:
        raise UserError("there is nothing in {paths}.", paths=", ".join(cleaning.inputs))
    folder = Folder(Path(cleaning.output).resolve())
    settings = dataclasses.asdict(dataclasses.replace(cleaning, output=""))
    del settings["executor"]
    beside = _checked(cleaning.steps)
    with held(folder, settings, shards, beside) as due:
        if due:
            stages = _stages(cleaning, shards, folder, settings)
            executor = Executor(cleaning.executor.kind, cleaning.executor.workers, cleaning.executor.options)
            executor.run(stages, folder.logs, lambda stage: started(stage, shards, folder))
    return folder.report()


def _checked(steps: Steps) -> list[str]:
    """Say before the work begins what would end it; the files that the steps read."""
    if steps.language and steps.language.keep:
        language.known_languages(steps.language.keep)
    if steps.perplexity and steps.perplexity.model:
        perplexity.model_of(steps.perplexity.model)
    if steps.words:
        words.listed(steps.words.files)
    lists = steps.words.files if steps.words else []
    tests = steps.contamination.tests if steps.contamination else []
    for path in tests:
        if not Path(path).is_file():
            raise UserError("{path} does not exist. Check the path.", path=path)
    return [*lists, *tests]


def _stages(cleaning: Cleaning, shards: list[Shard], folder: Folder, settings: dict[str, Any]) -> list[Stage]:
    steps, parquet = cleaning.steps, cleaning.format == "parquet"
    survivors = folder.part("survivors")
    about: dict[str, Any] = {"not_run": not_run(steps), "settings": settings}
    verdicts = Verdicts(folder.part("verdicts"))
    columns = folder.part(COLUMNS) if parquet else None
    judging: list[PipelineStep] = [
        Read(shards, cleaning.text, verdicts, folder.part("progress/judge"), columns),
        *_judged(steps, folder, verdicts, about),
        duplicates.Survivors(survivors),
    ]
    later: list[Stage] = []
    size = sum(shard.size for shard in shards)
    if parquet:
        later.append(Stage("columns", [UniteColumns(folder, len(shards))], 1))
    if steps.duplicates:
        step = duplicates.Duplicates(survivors, folder.part("duplicates"), len(shards))
        later.append(Stage("duplicates", [step], duplicates.parts_of(size)))
    if steps.near_duplicates:
        config = near.config_of(steps.near_duplicates.words)
        signatures, matched = folder.part("signatures"), folder.part("matches")
        judging.append(near.Signatures(signatures, config))
        found = near.NearGroups(signatures, matched, survivors, folder.part("near"), steps.near_duplicates.similarity)
        later += [
            Stage("matches", [near.Matches(signatures, matched, config)], near.tasks_of(size)),
            Stage("near-duplicates", [found], 1),
        ]
    if later and all(stage.tasks == 1 for stage in later):  # a start costs more than such a stage
        later = [Stage("duplicates", [step for stage in later for step in stage.steps], 1)]
    limit = steps.near_duplicates.similarity if steps.near_duplicates else 1.0
    folder.part("progress/write")
    return [
        Stage("judge", judging, len(shards)),
        *later,
        Stage("write", [Write(folder, shards, parquet, limit)], len(shards)),
        Stage("report", [Finish(folder, shards, about)], 1),
    ]


def _judged(steps: Steps, folder: Folder, verdicts: Verdicts, about: dict[str, Any]) -> Iterator[PipelineStep]:
    def step(name: str, make: Callable[[], Judge]) -> PipelineStep:
        return Judged(name, make, verdicts)

    if steps.length:
        yield step("length", partial(judges.length, steps.length))
    if steps.garbled:
        yield step("garbled", partial(judges.garbled, steps.garbled))
    if steps.encoded:
        yield step("encoded", partial(judges.encoded, steps.encoded))
    if steps.digits:
        yield step("digits", partial(judges.digits, steps.digits))
    if steps.html:
        yield step("html", partial(judges.html, steps.html))
    if steps.links:
        yield step("links", partial(judges.links, steps.links))
    if steps.symbols:
        yield step("symbols", partial(judges.symbols, steps.symbols))
    if steps.words and steps.words.files:
        yield step("words", partial(words.sensitive, steps.words, words.listed(steps.words.files)))
    if steps.repetition:
        yield Repetition(steps.repetition, verdicts)
    if steps.language and steps.language.keep:
        yield step("language", partial(language.language, steps.language))
    if steps.contamination and steps.contamination.tests:
        index = contamination.indexed(steps.contamination)
        path = folder.unfinished / INDEX
        contamination.save(index, path)
        about["test_items"] = {"looked_for": len(index.places) - index.too_short, "too_short": index.too_short}
        yield step("contamination", partial(_contaminated, path))
    if steps.perplexity and steps.perplexity.model:
        yield step("perplexity", partial(perplexity.unlikely, steps.perplexity))


def _contaminated(path: Path) -> Judge:
    return contamination.contaminated(contamination.loaded(path, path.stat().st_mtime_ns))
