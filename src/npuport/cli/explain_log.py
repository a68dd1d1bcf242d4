"""What `npuport explain --log` says: the first cause in the logs of a job, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS

if TYPE_CHECKING:
    from npuport.environment.first_cause import FailedJob
    from npuport.environment.troubles import Logs, Trouble

_SHOWN_RANKS = 16
_SHOWN_CHARACTERS = 400


def explain_logs(paths: Sequence[Path], as_json: bool) -> int:
    """Print what came first in the logs; the exit code: 1 if something went wrong, 0 if not."""
    from npuport.environment.first_cause import explain_failure
    from npuport.environment.troubles import read_logs

    logs = read_logs(paths)
    diagnosis = explain_failure(logs)
    if as_json:
        print(json.dumps(_as_json(logs, diagnosis), ensure_ascii=False, indent=2))
    else:
        print("\n".join(_as_text(logs, diagnosis)))
    return FINDINGS if diagnosis.by_rank else CLEAN


def _as_text(logs: Logs, diagnosis: FailedJob) -> Iterator[str]:
    from npuport.report.language import counted, translate

    if not diagnosis.by_rank:
        read = f"{counted(len(logs.files), 'file')}, {counted(logs.lines, 'line')}"
        yield translate("No error was found ({read}).", read=read)
        return
    shown = diagnosis.first or _of_suspect(diagnosis)
    if diagnosis.first is not None:
        yield translate("First cause: {what}", what=_where(diagnosis.first))
    else:
        yield translate("Every rank that reports an error only waits for others, or was ended. Look at these first:")
        for suspect in diagnosis.suspects or ():
            yield "  " + translate(
                "rank {rank}: {why}", rank=suspect.rank, why=translate(suspect.why, **suspect.values)
            )
        if not diagnosis.suspects:
            yield "  " + translate("(the logs do not say for whom; give the logs of all ranks, and ~/ascend/log)")
        yield translate("What they report: {what}", what=_where(shown))
    yield from _quoted(shown)
    yield from _explained(shown)
    yield from _others(diagnosis, shown)
    if diagnosis.unknown_codes:
        yield ""
        yield translate(
            "Unknown codes, which no document at hand names: {codes}. Look for them in CANN's own documents.",
            codes=", ".join(diagnosis.unknown_codes),
        )


def _of_suspect(diagnosis: FailedJob) -> Trouble:
    """Where there is no cause: what a suspect reports, else the first rank's error."""
    reported = [diagnosis.by_rank[one.rank] for one in diagnosis.suspects if one.rank in diagnosis.by_rank]
    return next(iter(reported), next(iter(diagnosis.by_rank.values())))


def _where(trouble: Trouble) -> str:
    rank = f"rank {trouble.rank}, " if trouble.rank is not None else ""
    time = f", {trouble.time:%Y-%m-%d %H:%M:%S}" if trouble.time is not None and trouble.time.year > 1900 else ""
    return f"{rank}{trouble.path}:{trouble.line}{time}"


def _quoted(trouble: Trouble) -> Iterator[str]:
    text = trouble.text if len(trouble.text) <= _SHOWN_CHARACTERS else trouble.text[:_SHOWN_CHARACTERS] + " …"
    yield from (f"  | {line}" for line in text.splitlines())
    if trouble.frame is not None:
        yield f"  | {trouble.frame}, in {trouble.frame.function}"


def _explained(trouble: Trouble) -> Iterator[str]:
    from npuport.facts import error_code
    from npuport.report.language import translate

    if trouble.known is not None:
        yield f"  {translate(trouble.known.cause)}"
        yield from (f"  - {translate(step)}" for step in trouble.known.steps)
        yield f"  [{trouble.known.basis}]"
        return
    named = [entry for code in trouble.codes if (entry := error_code(code)) is not None]
    for entry in named:
        yield f"  {entry.code}: {entry.meaning}  [{entry.basis}]"
    if trouble.exception:
        yield "  " + translate("An exception of the program itself: the line above is where to look.")
    elif not named:
        yield "  " + translate("Nothing more is known about this error.")


def _others(diagnosis: FailedJob, shown: Trouble) -> Iterator[str]:
    """One line for what each other rank reports."""
    from npuport.report.language import counted, translate

    reported = [trouble for trouble in diagnosis.by_rank.values() if trouble is not shown]
    rest = [trouble for trouble in reported if trouble.rank is not None or not trouble.is_effect]
    if not rest:
        return
    yield ""
    yield translate("Other ranks:")
    for trouble in rest[:_SHOWN_RANKS]:
        name = translate("follows") if trouble.is_effect else translate("cause?")
        first_line = trouble.text.splitlines()[0]
        short = first_line if len(first_line) <= 100 else first_line[:100] + " …"
        yield f"  {_where(trouble)} ({name}): {short}"
    if len(rest) > _SHOWN_RANKS:
        yield "  … " + counted(len(rest) - _SHOWN_RANKS, "more rank")


def _as_json(logs: Logs, diagnosis: FailedJob) -> dict[str, Any]:
    return {
        "version": 1,
        "files": logs.files,
        "lines": logs.lines,
        "ranks": sorted(logs.ranks),
        "first_cause": _trouble_json(diagnosis.first) if diagnosis.first is not None else None,
        "suspects": [{"rank": one.rank, "why": one.why.format(**one.values)} for one in diagnosis.suspects],
        "by_rank": [_trouble_json(trouble) for trouble in diagnosis.by_rank.values()],
        "unknown_codes": list(diagnosis.unknown_codes),
    }


def _trouble_json(trouble: Trouble) -> dict[str, Any]:
    known = trouble.known
    return {
        "rank": trouble.rank,
        "path": trouble.path,
        "line": trouble.line,
        "time": trouble.time.isoformat() if trouble.time is not None and trouble.time.year > 1900 else None,
        "text": trouble.text,
        "codes": list(trouble.codes),
        "exception": trouble.exception or None,
        "source": str(trouble.frame) if trouble.frame is not None else None,
        "known": known.name if known is not None else None,
        "role": known.role if known is not None else None,
        "cause": known.cause if known is not None else None,
        "steps": list(known.steps) if known is not None else [],
    }
