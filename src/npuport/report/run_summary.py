"""The lines that end a simulated run."""

from __future__ import annotations

from collections.abc import Sequence

from npuport.report.language import counted, translate
from npuport.report.migration_summary import migration_lines
from npuport.report.run_words import (
    Document,
    a_step,
    failure,
    line_of,
    line_with_source,
    needed,
    of_worst_line,
    peak,
    plain,
    size,
)

_NAMED = 3  # operators on a line


def run_summary(document: Document, reports: Sequence[str] = ()) -> list[str]:
    """Two to six lines; ``reports`` are the files that hold the whole of it."""
    failed = failure(document)
    if not document["processes"]:
        return [str(failed)]
    migration = document.get("migration")
    first = [translate("stopped: {reason}. Recorded until then:", reason=failed)] if failed else []
    last = [_memory(document)]
    if reports:
        last.append(translate("report: {files}", files=", ".join(reports)))
    return [
        *first,
        " · ".join([_steps(document), _operators(document)]),
        " · ".join([_synchronizations(document), _shapes(document)]),
        *(migration_lines(migration) if migration and migration["sites"] else []),
        " · ".join(part for part in last if part),
    ]


def _steps(document: Document) -> str:
    steps = document["run"]["steps"]
    return counted(steps, "step") if steps else translate("no optimizer step")


def _operators(document: Document) -> str:
    operators = document["operators"]
    native = sum(one["status"] in ("native", "composed") for one in operators)
    parts = [translate("{number} native", number=native)]
    if names := _with_status(document, "refused"):
        parts.append(translate("{number} refused ({names})", number=len(names), names=_listed(names)))
    if names := _with_status(document, "cpu"):
        text = translate("{number} on the CPU on a real NPU ({names})", number=len(names), names=_listed(names))
        parts.append(text)
    if names := _with_status(document, "partly_cpu"):
        parts.append(translate("{number} partly on the CPU ({names})", number=len(names), names=_listed(names)))
    if names := _with_status(document, "untested"):
        parts.append(translate("{number} untested for a dtype ({names})", number=len(names), names=_listed(names)))
    if names := _with_status(document, "unknown"):
        parts.append(translate("{number} unknown ({names})", number=len(names), names=_listed(names)))
    return f"{counted(len(operators), 'operator')}: {', '.join(parts)}"


def _with_status(document: Document, status: str) -> list[str]:
    return [one["name"] for one in document["operators"] if one["status"] == status]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")


def _synchronizations(document: Document) -> str:
    events = document["synchronizations"]
    if not events:
        return translate("no host-device synchronisation")
    worst = of_worst_line(events)
    line = line_with_source(worst[0]["place"])
    total, here = a_step(document, events), a_step(document, worst)
    if total:
        return translate(
            "{number} host-device synchronisations a step, {here} of them from {line}",
            number=plain(total),
            here=plain(here or 0),
            line=line,
        )
    number, from_line = sum(one["count"] for one in events), sum(one["count"] for one in worst)
    if total is None:
        return translate(
            "{number} host-device synchronisations, {here} of them from {line}",
            number=plain(number),
            here=plain(from_line),
            line=line,
        )
    return translate(
        "no host-device synchronisation in a step after the first, {number} outside, {here} of them from {line}",
        number=plain(number),
        here=plain(from_line),
        line=line,
    )


def _shapes(document: Document) -> str:
    shapes = document["shapes"]
    if not shapes["looked_for"]:
        return translate("too few steps to see whether shapes settle")
    if not shapes["changing"]:
        return translate("no new shapes after step {step}", step=shapes["last_new_step"] + 1)
    return translate(
        "shapes keep changing at {lines}, most at {line}",
        lines=counted(len(shapes["changing"]), "line"),
        line=line_of(shapes["changing"][0]["place"]),
    )


def _memory(document: Document) -> str:
    memory = peak(document)
    if memory is None:
        return ""
    return translate("peak memory {peak} of {limit}", peak=size(needed(memory)), limit=size(memory["limit"]))
