"""`npuport model compare`: two evaluations beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.llm.evaluation.comparing import Comparison, Difference

SCHEMA = "npuport-evaluation-comparison/1"


def compare_files(first: Path, second: Path, *, as_json: bool) -> None:
    """Print what the two have in common and what differs; end with 1 unless every score is the same.

    Raises:
        UserError: a file is no result of lm-eval, or they share no task.
    """
    from npuport.cli.shared import FINDINGS
    from npuport.llm.evaluation.comparing import compare
    from npuport.llm.evaluation.scores import read_results

    found = compare(read_results(first), read_results(second))
    if not found.differences:
        raise UserError("{first} and {second} share no score: evaluate the same tasks.", first=first, second=second)
    print(document(first, second, found) if as_json else "\n".join(in_words(found)))
    if not found.same:
        raise SystemExit(FINDINGS)


def in_words(found: Comparison) -> Iterator[str]:
    """The lines for a person."""
    from npuport.llm.evaluation.comparing import LEVEL
    from npuport.report.language import translate

    width = max(len(one.score.task) for one in found.differences)
    for one in found.differences:
        metric = one.score.metric + ("" if one.score.filter == "none" else f" ({one.score.filter})")
        values = f"{one.score.value:.4f} -> {one.other.value:.4f}  ({one.other.value - one.score.value:+.4f})"
        yield f"{_verdict(one):<14}  {one.score.task:<{width}}  {metric:<16} {values}  {_why(one)}"
    for task in found.only_first:
        yield translate("only in the first: {task}", task=task)
    for task in found.only_second:
        yield translate("only in the second: {task}", task=task)
    yield ""
    yield translate(
        "A score differs where equal models would show as much in fewer than {level} of {number} such comparisons.",
        level=f"{LEVEL:.0%}",
        number=len(found.differences),
    )


def _verdict(one: Difference) -> str:
    from npuport.report.language import translate

    if one.verdict == "same":
        return translate("same")
    if one.verdict == "differs":
        return translate("DIFFERS")
    return translate("unknown") if one.verdict == "unknown" else translate("not comparable")


def _why(one: Difference) -> str:
    from npuport.report.language import translate

    if one.settings:
        return "; ".join(one.settings)
    if one.chance is None:
        return translate("no standard error")
    if one.paired:
        return translate(
            "{changed} of {samples} answers score otherwise, p = {chance}",
            changed=one.changed,
            samples=one.samples,
            chance=f"{one.chance:.2g}",
        )
    return translate("no samples: by the standard errors of both, p = {chance}", chance=f"{one.chance:.2g}")


def document(first: Path, second: Path, found: Comparison) -> str:
    """The JSON document (schemas/npuport-evaluation-comparison-1.json)."""
    scores = []
    for one in found.differences:
        values = asdict(one)
        score, other = values.pop("score"), values.pop("other")
        same = {name: score[name] for name in ("task", "metric", "filter")}
        first_of = {"first": score["value"], "second": other["value"]}
        scores.append({**same, **first_of, **values})
    said = {
        "schema": SCHEMA,
        "first": str(first),
        "second": str(second),
        "same": found.same,
        "scores": scores,
        "only_first": found.only_first,
        "only_second": found.only_second,
    }
    return json.dumps(said, indent=2, ensure_ascii=False)
