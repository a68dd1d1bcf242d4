"""What `npuport precision preflight` says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS, print_json
from npuport.findings import Sentence

if TYPE_CHECKING:
    from npuport.precision.preflight.differences import Difference

_SHOWN = 8  # differences of one check


def preflight(reference: Path, candidate: Path | None, as_json: bool) -> int:
    """Compare what two runs are made of, or judge one; the exit code."""
    from npuport.precision.preflight.alone import judge_run
    from npuport.precision.preflight.comparing import compare_runs
    from npuport.precision.preflight.reading import read_facts

    run = read_facts(reference)
    found = judge_run(run) if candidate is None else compare_runs(run, read_facts(candidate))
    if as_json:
        print_json(_as_json(found))
    else:
        print("\n".join(_as_text(found, is_pair=candidate is not None)))
    return FINDINGS if any(one.check.level == "important" for one in found) else CLEAN


def _as_text(found: list[Difference], is_pair: bool) -> Iterator[str]:
    from npuport.report.language import counted, translate

    important = sum(one.check.level == "important" for one in found)
    if not found:
        yield translate("Nothing differs.") if is_pair else translate("Nothing here is random or unknown.")
        return
    yield (
        f"{counted(len(found), 'difference')}, {translate('{number} important', number=important)}"
        if is_pair
        else (translate("What a comparison with this run must allow for:"))
    )
    marks = {"important": "✗", "minor": "·", "unknown": "?"}
    checks = list(dict.fromkeys(one.check for one in found))
    for check in checks:
        members = [one for one in found if one.check == check]
        yield ""
        yield f"{marks[check.level]} {check.name}: {translate(check.why)}"
        for one in members[:_SHOWN]:
            rank = f"{translate('rank {rank}', rank=one.rank)}: " if one.rank else ""
            yield f"    {rank}{said(one.text)}"
        if len(members) > _SHOWN:
            yield "    … " + counted(len(members) - _SHOWN, "more difference")
        yield f"    → {translate(check.next_step)}"


def said(sentence: Sentence) -> str:
    """A sentence, with the sentences in it, in the user's language."""
    from npuport.report.language import translate

    values = {name: said(value) if isinstance(value, Sentence) else value for name, value in sentence.values.items()}
    return translate(sentence.template, **values)


def _as_json(found: list[Difference]) -> dict[str, Any]:
    return {
        "version": 1,
        "differences": [
            {
                "check": one.check.name,
                "level": one.check.level,
                "rank": one.rank,
                "text": str(one.text),
                "why": one.check.why,
                "next_step": one.check.next_step,
                "source": str(one.check.basis),
            }
            for one in found
        ],
    }
