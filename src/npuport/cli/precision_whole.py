"""What `npuport precision compare` says of a run on one device and one on several ranks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS, print_json
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.precision.operators.shards import WholeComparison

_SHOWN = 5

Files = Mapping[tuple[int, int], Path]
"""The files of a run by step and rank."""


def is_whole_and_parts(reference: Files, candidate: Files) -> bool:
    """Whether one run has one rank and the other several.

    Raises:
        UserError: both have several, and not the same: how their tensors belong together is not known.
    """
    ranks = [{rank for _, rank in files} for files in (reference, candidate)]
    if ranks[0] == ranks[1]:
        return False
    if min(map(len, ranks)) > 1 and not (ranks[0] <= ranks[1] or ranks[1] <= ranks[0]):
        raise UserError(
            "The runs have different ranks ({reference} and {candidate}): compare each with a run on one device.",
            reference=_text(ranks[0]),
            candidate=_text(ranks[1]),
        )
    return min(map(len, ranks)) == 1 and max(map(len, ranks)) > 1


def compare_whole(reference: Files, candidate: Files, folder: Path, as_json: bool) -> int:
    """Compare each step that both have; the exit code. ``folder``: the candidate's."""
    from npuport.precision.dumps import read_any_step
    from npuport.precision.operators.shards import compare_with_whole

    is_reference_whole = len({rank for _, rank in reference}) == 1
    whole, parts = (reference, candidate) if is_reference_whole else (candidate, reference)
    compared = []
    for step, rank in sorted(whole):
        files = {other: path for (at, other), path in parts.items() if at == step}
        if files:
            steps = {other: read_any_step(path) for other, path in files.items()}
            compared.append((step, len(files), compare_with_whole(read_any_step(whole[step, rank]), steps)))
    if not compared:
        raise UserError("{reference} and {candidate} have no recorded step in common.",
                        reference=next(iter(reference.values())).parent, candidate=folder)  # fmt: skip
    if as_json:
        print_json([_as_json(*one) for one in compared])
    else:
        print("\n".join(_as_text(compared, folder)))
    return FINDINGS if any(comparison.findings for _, _, comparison in compared) else CLEAN


def _as_text(compared: list[tuple[int, int, WholeComparison]], folder: Path) -> Iterator[str]:
    from npuport.report.language import counted, translate

    for step, ranks, comparison in compared:
        layouts = ", ".join(f"{number} {layout}" for layout, number in comparison.layouts.items())
        floor = translate("usually {floor} apart", floor=f"{comparison.floor:.0e}")
        sides = translate("one device against {ranks}", ranks=counted(ranks, "rank"))
        yield f"step {step}: {sides}: {layouts}; {floor}"
        if not comparison.findings:
            yield "  " + translate("The ranks together compute what the single device computes.")
        for number, one in enumerate(comparison.findings[:_SHOWN], 1):
            on = translate("on rank {ranks}", ranks=", ".join(map(str, one.ranks)))
            yield f"  {number}  {one.kind} {one.name} {on}"
            yield f"     {translate(one.text.template, **one.text.values)}"
        if len(comparison.findings) > _SHOWN:
            yield "  … " + counted(len(comparison.findings) - _SHOWN, "more finding")
    if any(comparison.findings for _, _, comparison in compared):
        command = f"npuport precision ranks {shlex.quote(str(folder))}"
        yield f"{translate('Next:')} {command}      {translate('computes what the ranks did together again')}"


def _as_json(step: int, ranks: int, comparison: WholeComparison) -> dict[str, Any]:
    return {
        "version": 1,
        "step": step,
        "ranks": ranks,
        "layouts": dict(comparison.layouts),
        "floor": comparison.floor,
        "findings": [
            {"kind": one.kind, "name": one.name, "ranks": list(one.ranks), "apart": one.apart, "text": str(one.text)}
            for one in comparison.findings
        ],
    }


def _text(ranks: set[int]) -> str:
    return ", ".join(map(str, sorted(ranks)))
