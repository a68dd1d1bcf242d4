"""`npuport data clean`: options and pipeline files to a run, and its report in words."""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.data_progress import bar, needs_pipelines
from npuport.errors import UserError
from npuport.findings import say

if TYPE_CHECKING:
    from npuport.llm.cleaning.settings import Cleaning
    from npuport.llm.pipelines.executors import Stage
    from npuport.llm.pipelines.folder import Folder
    from npuport.llm.pipelines.shards import Shard

_PIPELINE = (".yaml", ".yml")


@dataclass(frozen=True)
class Options:
    """The command's options as they were given; "" and 0 stand for none."""

    output: str
    text: str
    form: str
    languages: tuple[str, ...]
    workers: int
    write_default: Path | None
    as_json: bool


def clean_files(inputs: Sequence[str], options: Options) -> None:
    """Clean the input, or write a pipeline file; print what became of the records."""
    if options.write_default is not None:
        _write_default(inputs, options, options.write_default)
        return
    needs_pipelines()
    cleaning = _cleaning(inputs, options)
    from npuport.llm.cleaning.run import run

    began, stages = time.perf_counter(), list[str]()
    with bar() as shown:

        def started(stage: Stage, shards: list[Shard], folder: Folder) -> None:
            stages.append(stage.name)
            shown(stage, shards, folder)

        report = run(cleaning, started)
    if report is None:
        from npuport.report.language import translate

        print(translate("handed over to Slurm; {path} fills when its jobs end", path=cleaning.output))
    elif options.as_json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        print("\n".join(in_words(report, cleaning.output, time.perf_counter() - began if stages else 0.0)))


def _cleaning(inputs: Sequence[str], options: Options) -> Cleaning:
    from npuport.llm.cleaning.settings import Cleaning
    from npuport.llm.pipelines.options import filled, read

    files = [name for name in inputs if name.endswith(_PIPELINE)]
    if len(files) > 1 or (files and len(inputs) > 1):
        raise UserError("give one pipeline file, or files with texts, not both.")
    place = files[0] if files else "npuport data clean"
    given = read(Path(files[0])) if files else {"inputs": list(inputs)}
    cleaning = filled(Cleaning, given, place)
    executor = cleaning.executor
    if options.workers:
        executor = dataclasses.replace(executor, workers=options.workers)
    steps = cleaning.steps
    if options.languages:
        wanted = filled(type(steps), {"language": {"keep": list(options.languages)}}, place).language
        steps = dataclasses.replace(steps, language=wanted)
    own = {"output": options.output, "text": options.text, "format": options.form}
    changed = filled(Cleaning, {name: value for name, value in own.items() if value}, "npuport data clean")
    kept = {name: getattr(changed, name) for name, value in own.items() if value}
    return dataclasses.replace(cleaning, executor=executor, steps=steps, **kept)


def _write_default(inputs: Sequence[str], options: Options, path: Path) -> None:
    from npuport.cli.shared import write_aside
    from npuport.llm.cleaning.settings import Cleaning
    from npuport.llm.pipelines.options import starter
    from npuport.report.language import translate

    if path.exists():
        raise UserError("{path} is there already: choose another name.", path=path)
    given = {"inputs": list(inputs) or ["texts/*.jsonl"], "output": options.output or "cleaned"}
    write_aside(path, ("\n".join(starter(Cleaning, given)) + "\n").encode())
    print(
        translate("written: {path}; run it with npuport data clean {quoted}", path=path, quoted=shlex.quote(str(path)))
    )


def in_words(report: dict[str, Any], output: str, seconds: float) -> list[str]:
    """What was read, kept and dropped, by reason; what was not looked for is said; 0 seconds: it was so before."""
    from npuport.report.language import counted, translate

    records = report["records"]
    lines = [
        translate(
            "{path}: {records}, {kept} kept, {dropped} dropped",
            path=output,
            records=counted(records, "record"),
            kept=f"{report['kept']:,}",
            dropped=f"{report['dropped']:,}",
        )
    ]
    width = max(map(len, report["reasons"]), default=0)
    for reason, number in report["reasons"].items():
        lines.append(
            f"  {reason:<{width}}  {number:>12,}  {number / records:>7.2%}  {translate(REASONS[reason].template)}"
        )
    if report["not_run"]:
        lines.append(
            translate(
                "not run: {steps}",
                steps=", ".join(f"{name} ({translate(why)})" for name, why in report["not_run"].items()),
            )
        )
    items = report.get("test_items")
    if items and items["too_short"]:
        lines.append(
            translate(
                "too short to be looked for: {number} of the texts of test sets",
                number=f"{items['too_short']:,}",
            )
        )
    if seconds:
        speed = report["bytes"]["read"] / 1e6 / seconds
        lines.append(translate("{seconds:.0f} s, {speed:.1f} MB/s", seconds=seconds, speed=speed))
    if report["dropped"]:
        lines.append(translate("Next:") + f" npuport data dropped {shlex.quote(output)}")
    return lines


REASONS = {
    "not-json": say("no JSON object"),
    "no-text": say("the field with the text is missing or empty"),
    "too-short": say("fewer characters than wanted"),
    "too-long": say("more characters than wanted"),
    "garbled": say("read in a wrong encoding, or characters of no writing"),
    "encoded": say("base64, hexadecimal numbers, escapes or bits"),
    "digits": say("nothing but numbers"),
    "html": say("markup"),
    "links": say("web addresses"),
    "symbols": say("signs in place of letters"),
    "words": say("words of the lists"),
    "repetition": say("the same lines or phrases over and over"),
    "language": say("another language"),
    "contamination": say("a part of a test set"),
    "perplexity": say("unlikely for the model"),
    "duplicate": say("the same text as an earlier one"),
    "near-duplicate": say("nearly the same text as an earlier one"),
}
