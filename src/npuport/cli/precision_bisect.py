"""What `npuport precision bisect` says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.cli.shared import CLEAN, FINDINGS, print_json, talk
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.precision.bisect.plan import Unit

_SHOWN = 10


def bisect(
    command: Sequence[str], how: str, check: str, reference: Path | None, most: int, keep: Path, as_json: bool
) -> int:  # fmt: skip
    """Search with a training; the exit code."""
    from npuport.precision.bisect.plan import HOW
    from npuport.precision.bisect.runs import Judge, Runs
    from npuport.precision.bisect.search import search

    if how not in HOW:
        raise UserError("--by takes {known}, not {value}.", known=", ".join(HOW), value=how)
    if check and reference is not None:
        raise UserError("--check and --reference are two judges: give one.")
    runs = Runs(command, how, Judge(check, reference), keep, most, _told)
    answer = search(runs)
    if as_json:
        units = [{"operator": one.operator, "module": one.module} for one in answer.units]
        print_json({"version": 1, "outcome": answer.outcome, "by": how, "units": units, "runs": runs.number})
    else:
        print("\n".join(_as_text(answer.outcome, answer.units, how, runs.number, keep)))
    return CLEAN if answer.outcome in ("found", "right as it is") else FINDINGS


def _told(number: int, raised: int, goes: bool, seconds: float) -> None:
    from npuport.report.language import translate

    verdict = translate("right") if goes else translate("wrong")
    line = translate("run {number}: {raised} raised: {verdict} ({seconds} s)", number=number, raised=raised,
                     verdict=verdict, seconds=f"{seconds:.0f}")  # fmt: skip
    talk(f"npuport: {line}")


def _as_text(outcome: str, units: Sequence[Unit], how: str, runs: int, keep: Path) -> list[str]:
    from npuport.report.language import counted, translate

    if outcome == "right as it is":
        return [translate("The run is right as it is: there is nothing to search for.")]
    if outcome == "stays":
        following = translate(
            "Next: npuport precision preflight compares data, weights and settings; logs are in {path}", path=keep
        )
        return [translate("It is wrong with every operator raised too: their precision is not the cause."), following]
    where = {
        "float32": translate("in float32"),
        "cpu": translate("on the CPU"),
        "float64": translate("in float64 on the CPU"),
    }[how]
    if outcome == "out of runs" and not units:
        return [translate("The limit of runs is reached before anything is known; the same command goes on.")]
    shown = [f"  {one.module + ' · ' if one.module else ''}{one.operator}" for one in units[:_SHOWN]]
    more = [f"  … {translate('and {number} more', number=len(units) - _SHOWN)}"] if len(units) > _SHOWN else []
    ran = counted(runs, "run")
    if outcome == "out of runs":
        head = translate("With these computed {where} the run is right; after {runs} it is not known whether fewer do. "
                         "The same command goes on.", where=where, runs=ran)  # fmt: skip
    else:
        head = translate("With these computed {where}, and nothing else changed, the run is right ({runs}):",
                         where=where, runs=ran)  # fmt: skip
    only = f"{units[0].module}.{units[0].operator.strip('_')}" if units[0].module else units[0].operator
    following = translate("Next: npuport precision check-ops DUMP --only {only} judges these calls alone", only=only)
    return [head, *shown, *more, following]
