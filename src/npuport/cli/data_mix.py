"""`npuport data mix`: options and pipeline files to a run, and its report in words."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.data_progress import bar, needs_pipelines
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.llm.mixing.settings import Mixing

_PIPELINE = (".yaml", ".yml")


@dataclass(frozen=True)
class Options:
    """The command's options as they were given; "" and 0 stand for none."""

    output: str
    size: int
    unit: str
    tokenizer: str
    seed: int
    workers: int
    as_json: bool


def mix_files(sources: Sequence[str], options: Options) -> None:
    """Mix the sources into a new folder; print what was drawn of each."""
    needs_pipelines()
    mixing = _mixing(sources, options)
    from npuport.llm.mixing.run import run
    from npuport.report.language import translate

    with bar() as started:
        report = run(mixing, started)
    if report is None:
        print(translate("handed over to Slurm; {path} fills when its jobs end", path=mixing.output))
    elif options.as_json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        print("\n".join(in_words(report, mixing)))


def _mixing(sources: Sequence[str], options: Options) -> Mixing:
    from npuport.llm.mixing.settings import Mixing
    from npuport.llm.pipelines.options import filled, read

    files = [name for name in sources if name.endswith(_PIPELINE)]
    if files and len(sources) > 1:
        raise UserError("give one pipeline file, or sources as NAME=PATH:WEIGHT, not both.")
    place = "npuport data mix"
    if files:
        mixing = filled(Mixing, read(Path(files[0])), files[0])
    else:
        mixing = filled(Mixing, {"sources": dict(map(_source, sources))}, place)
    given = {
        name: value for name in ("output", "size", "unit", "tokenizer", "seed") if (value := getattr(options, name))
    }
    changed = filled(Mixing, given, place)
    executor = mixing.executor
    if options.workers:
        executor = dataclasses.replace(executor, workers=options.workers)
    return dataclasses.replace(mixing, executor=executor, **{name: getattr(changed, name) for name in given})


def _source(given: str) -> tuple[str, dict[str, Any]]:
    name, named, rest = given.partition("=")
    path, weighed, weight = rest.rpartition(":")
    try:
        if named and weighed and name and path:
            return name, {"inputs": [path], "weight": float(weight)}
    except ValueError:
        pass
    raise UserError("a source is NAME=PATH:WEIGHT, such as web=cleaned/kept:0.7, not {given}.", given=given)


def in_words(report: dict[str, Any], mixing: Mixing) -> list[str]:
    """What was drawn of each source."""
    from npuport.report.language import counted, translate

    units = {
        "documents": translate("documents"),
        "characters": translate("characters"),
        "tokens": translate("tokens"),
    }
    unit = units[mixing.unit]
    lines = [
        translate(
            "{path}: {documents} drawn, {size} {unit}",
            path=mixing.output,
            documents=counted(report["documents"], "document"),
            size=f"{report['size']:,}",
            unit=unit,
        )
    ]
    weights = sum(one["weight"] for one in report["sources"].values())
    width = max(map(len, report["sources"]))
    for name, one in report["sources"].items():
        lines.append(
            f"  {name:<{width}}  {one['documents']:>12,}  {one['size']:>16,}"
            f"  {translate('share')} {one['share']:>7.2%}  {translate('weight')} {one['weight'] / weights:>7.2%}"
            f"  {translate('epochs')} {one['epochs']:.2f}"
        )
    return lines
