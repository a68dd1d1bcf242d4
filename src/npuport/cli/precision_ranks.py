"""What `npuport precision ranks` says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS, print_json
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.findings import Sentence
    from npuport.precision.operators.calls import Call
    from npuport.precision.operators.collectives import CollectiveCheck
    from npuport.precision.operators.drift import Drift

_SHOWN = 5


@dataclass(frozen=True)
class CheckedStep:
    """What was found in one step of all ranks."""

    step: int
    ranks: tuple[int, ...]
    collectives: CollectiveCheck
    drifts: tuple[Drift, ...]

    @property
    def is_clean(self) -> bool:
        return not self.collectives.wrong and not self.drifts


def check_ranks(folder: Path, as_json: bool) -> int:
    """Check each step of which several ranks were recorded; the exit code."""
    checked = list(checked_steps(folder))
    if not any(len(one.ranks) > 1 for one in checked):
        raise UserError(
            "{path} holds one rank only, and ranks are checked against one another: record a job that has "
            "several, without --dump-ranks.",
            path=folder,
        )
    if as_json:
        print_json([_as_json(one) for one in checked])
    else:
        print("\n".join(line for one in checked for line in as_text(one)))
    return CLEAN if all(one.is_clean for one in checked) else FINDINGS


def checked_steps(folder: Path) -> Iterator[CheckedStep]:
    from npuport.precision.operators.calls import read_step
    from npuport.precision.operators.collectives import check_collectives
    from npuport.precision.operators.drift import find_drift

    for step, files in files_of_steps(folder).items():
        steps = {rank: read_step(path) for rank, path in files.items()}
        yield CheckedStep(step, tuple(steps), check_collectives(steps), tuple(find_drift(steps)))


def files_of_steps(folder: Path) -> dict[int, Mapping[int, Path]]:
    """The files of each step by rank, both ascending."""
    from npuport.precision.dumps import recorded_steps

    found: dict[int, dict[int, Path]] = defaultdict(dict)
    for (step, rank), path in sorted(recorded_steps(folder).items()):
        found[step][rank] = path
    return dict(found)


def as_text(one: CheckedStep) -> Iterator[str]:
    from npuport.report.language import counted, translate

    check = one.collectives
    yield (
        f"step {one.step}: {counted(len(one.ranks), 'rank')}, "
        f"{translate('{checked} of {seen} collectives computed again', checked=check.checked, seen=check.seen)}"
    )
    if one.is_clean:
        yield "  " + translate("The collectives are right, and parameters are the same on all ranks that share them.")
    found: list[tuple[Call | None, tuple[int, ...], Sentence, str]] = [
        (wrong.first, wrong.ranks, wrong.text, wrong.first.operator) for wrong in check.wrong
    ]
    found += [(same[0].call, same[0].ranks, same[0].text, _names(same)) for same in _alike(one.drifts)]
    for number, entry in enumerate(found[:_SHOWN], 1):
        yield from _entry(number, *entry)
    if len(found) > _SHOWN:
        yield "  … " + counted(len(found) - _SHOWN, "more finding")


def _alike(drifts: tuple[Drift, ...]) -> list[list[Drift]]:
    """Parameters that part on the same ranks for the same reason: one cause mostly makes all of them differ."""
    groups: dict[tuple[Any, ...], list[Drift]] = defaultdict(list)
    for one in drifts:
        groups[one.ranks, one.text.template, one.call is None].append(one)
    return list(groups.values())


def _names(drifts: list[Drift]) -> str:
    from npuport.report.language import translate

    more = f" {translate('and {number} more', number=len(drifts) - 1)}" if len(drifts) > 1 else ""
    return drifts[0].name + more


def _entry(number: int, call: Call | None, ranks: tuple[int, ...], text: Sentence, name: str) -> Iterator[str]:
    from npuport.report.language import translate

    place = "" if call is None else f" ({call.phase}, call {call.index})"
    line = f"      {call.line}" if call is not None and call.line else ""
    where = f"{call.module} · " if call is not None and call.module else ""
    on = translate("on rank {ranks}", ranks=", ".join(map(str, ranks)))
    yield f"  {number}  {where}{name}{place} {on}{line}"
    yield f"     {translate(text.template, **text.values)}"


def _as_json(one: CheckedStep) -> dict[str, Any]:
    return {
        "version": 1,
        "step": one.step,
        "ranks": list(one.ranks),
        "collectives": {"seen": one.collectives.seen, "checked": one.collectives.checked},
        "wrong": [
            {
                "operator": wrong.first.operator,
                "module": wrong.first.module,
                "phase": wrong.first.phase,
                "index": wrong.first.index,
                "line": wrong.first.line or None,
                "ranks": list(wrong.ranks),
                "apart": wrong.apart,
                "text": str(wrong.text),
            }
            for wrong in one.collectives.wrong
        ],
        "drift": [
            {
                "name": drift.name,
                "ranks": list(drift.ranks),
                "apart": drift.apart,
                "index": drift.call.index if drift.call is not None else None,
                "text": str(drift.text),
            }
            for drift in one.drifts
        ],
    }
