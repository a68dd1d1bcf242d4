"""What `npuport precision compare` says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.precision.operators.calls import Step
    from npuport.precision.operators.suspects import Comparison
    from npuport.precision.operators.suspicion import Suspect

_SHOWN = 5


def compare_folders(reference: Path, candidate: Path, as_json: bool, columns: Path | None = None) -> int:
    """Compare each step and rank that both have; the exit code. ``columns``: where msprobe's table goes."""
    from npuport.precision.dumps import read_any_step
    from npuport.precision.operators.suspects import compare

    pairs = _pairs(reference, candidate)
    if columns is not None:
        from npuport.cli.precision_columns import write_columns

        write_columns(pairs, columns)
    compared = []
    for name, (one, other) in pairs.items():
        steps = read_any_step(one), read_any_step(other)
        compared.append((name, steps[1], compare(*steps)))
    if as_json:
        print(json.dumps([_as_json(*entry) for entry in compared], ensure_ascii=False, indent=2))
    else:
        print("\n".join(line for entry in compared for line in _as_text(*entry)))
    return FINDINGS if any(comparison.suspects for _, _, comparison in compared) else CLEAN


def _pairs(reference: Path, candidate: Path) -> dict[str, tuple[Path, Path]]:
    """The files that both sides have, by step and rank, in order; two files are a pair of their own."""
    if reference.is_file() and candidate.is_file():
        return {candidate.name: (reference, candidate)}
    from npuport.precision.dumps import steps_in

    found = [steps_in(reference), steps_in(candidate)]
    both = sorted(found[0].keys() & found[1].keys())
    if not both:
        raise UserError(
            "{reference} and {candidate} have no recorded step in common.", reference=reference, candidate=candidate
        )
    return {f"step {step}, rank {rank}": (found[0][step, rank], found[1][step, rank]) for step, rank in both}


def _as_text(name: str, step: Step, comparison: Comparison) -> Iterator[str]:
    from npuport.report.language import counted, translate

    calls = counted(comparison.calls, "operator call")
    noise = translate("errors {noise} x those of the reference", noise=f"{comparison.noise:.2g}")
    yield f"{name} ({step.device}): {calls}, {translate('{number} replayed', number=comparison.replayed)}, {noise}"
    if comparison.random is not None:
        yield "  " + translate(
            "From {operator} on ({line}) the random numbers of the two differ: values behind it are not compared. "
            "Record both with dropout off.",
            operator=comparison.random.operator,
            line=comparison.random.line or comparison.random.module,
        )
    for note in comparison.notes:
        yield "  " + translate(note.template, **note.values)
    if not comparison.suspects:
        yield "  " + translate("Nothing is suspected.")
    for number, suspect in enumerate(comparison.suspects[:_SHOWN], 1):
        yield from _suspect(number, suspect)
    if len(comparison.suspects) > _SHOWN:
        yield "  … " + counted(len(comparison.suspects) - _SHOWN, "more suspect")


def _suspect(number: int, suspect: Suspect) -> Iterator[str]:
    from npuport.report.language import translate

    call = suspect.call
    place = f"{call.module} · " if call.module else ""
    line = f"      {call.line}" if call.line else ""
    yield f"  {number}  {place}{call.operator} ({call.phase}){line}"
    yield f"     {translate(suspect.text.template, **suspect.text.values)}"


def _as_json(name: str, step: Step, comparison: Comparison) -> dict[str, Any]:
    return {
        "version": 1,
        "name": name,
        "step": step.step,
        "rank": step.rank,
        "calls": comparison.calls,
        "replayed": comparison.replayed,
        "noise": comparison.noise,
        "random_from": comparison.random.index if comparison.random is not None else None,
        "notes": [str(note) for note in comparison.notes],
        "suspects": [
            {
                "operator": one.call.operator,
                "module": one.call.module,
                "phase": one.call.phase,
                "line": one.call.line or None,
                "index": one.call.index,
                "kind": one.kind,
                "score": one.score,
                "text": str(one.text),
            }
            for one in comparison.suspects
        ],
    }
