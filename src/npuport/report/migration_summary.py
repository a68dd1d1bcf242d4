"""The lines that end a run whose CUDA code was converted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npuport.report.language import counted, translate

_NAMED = 3  # lines


def effect_words() -> dict[str, str]:
    """Words for what a line does on the NPU, what asks for attention first."""
    return {
        "refused": translate("refused"),
        "left": translate("left as written"),
        "no effect": translate("without effect"),
        "emulated": translate("emulated"),
        "at run time": translate("decided at run time"),
        "same": translate("the same"),
    }


def migration_summary(document: Mapping[str, Any], reports: Sequence[str] = ()) -> list[str]:
    """The lines for a run on a device; ``reports`` are the files that hold the whole of it."""
    run = document["run"]
    if not run["npu"]:
        lines = [translate("nothing was converted: no NPU was wanted for this run")]
    else:
        lines = migration_lines(document["migration"])
    if run["exit_code"]:
        lines.insert(0, translate("the run ended with exit code {code}", code=run["exit_code"]))
    return [*lines, *([translate("report: {files}", files=", ".join(reports))] if reports else [])]


def migration_lines(migration: Mapping[str, Any]) -> list[str]:
    """What became of CUDA code, in one or two lines."""
    sites = migration["sites"]
    if not migration["modules"]:
        return [translate("no Python script of your own ran")]
    if not sites:
        return [translate("no CUDA code in {modules}", modules=counted(len(migration["modules"]), "module"))]
    files = len({site["path"] for site in sites})
    counts = [(word, effect, _with(sites, effect)) for effect, word in effect_words().items()]
    kinds = ", ".join(
        f"{len(found):,} {word}{_places(found) if effect == 'refused' else ''}"
        for word, effect, found in reversed(counts)
        if found
    )
    lines = [
        translate(
            "CUDA code: {lines} in {files}: {kinds}",
            lines=counted(len(sites), "line"),
            files=counted(files, "file"),
            kinds=kinds,
        )
    ]
    more = []
    if migration["stand_ins"]:
        more.append(translate("stand-ins: {names}", names=", ".join(migration["stand_ins"])))
    if migration["libraries"]:
        number = counted(len(migration["libraries"]), "line")
        more.append(translate("libraries: {lines} asked for CUDA and got the NPU", lines=number))
    return [*lines, *([" · ".join(more)] if more else [])]


def _with(sites: Sequence[Mapping[str, Any]], effect: str) -> list[Mapping[str, Any]]:
    return [site for site in sites if site["effect"] == effect]


def _places(sites: Sequence[Mapping[str, Any]]) -> str:
    named = ", ".join(f"{site['path']}:{site['line']}" for site in sites[:_NAMED])
    return f" ({named}{' …' if len(sites) > _NAMED else ''})"
