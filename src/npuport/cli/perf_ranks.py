"""`npuport perf ranks`: what ranks of one job show beside one another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS, MISUSE, progress
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.performance.ranks.checks import RanksFinding
    from npuport.performance.ranks.summary import RankSummary

SCHEMA = "npuport-ranks/1"
_SHOWN = 8  # findings, and ranks in the table


def compare_ranks(paths: Sequence[Path], *, jobs: int, ray: bool, as_json: bool) -> int:
    """Compare the ranks under the paths; the exit code."""
    from npuport.cli.perf_analyze import name_problems
    from npuport.performance.ranks.checks import findings_of, lateness

    ranks = _summaries(paths, jobs, ray)
    if len(ranks) < 2:
        raise UserError("{path} holds one profile: comparing ranks takes several.", path=paths[0])
    findings = findings_of(ranks)
    late = lateness(ranks)
    if as_json:
        print(json.dumps(_as_json(ranks, late, findings), ensure_ascii=False, indent=2))
    else:
        print("\n".join(_as_text(ranks, late, findings)))
    problems = [problem for one in ranks for problem in one.problems]
    name_problems(problems)
    return MISUSE if problems else FINDINGS if findings else CLEAN


def _summaries(paths: Sequence[Path], jobs: int, ray: bool) -> list[RankSummary]:
    from npuport.performance.ranks.gathering import summaries
    from npuport.performance.reading.discover import profiles_under
    from npuport.report.language import translate

    found = profiles_under(paths)
    with progress(len(found), translate("reading ranks")) as advanced:
        return summaries(found, jobs=jobs, ray=ray, advanced=advanced)


def _as_text(ranks: Sequence[RankSummary], late: dict[int, int], findings: Sequence[RanksFinding]) -> Iterator[str]:
    from npuport.performance.findings.base import milliseconds
    from npuport.report.doctor_text import said
    from npuport.report.language import counted, translate

    longest = max(ranks, key=lambda one: one.step_ns)
    average = sum(one.step_ns for one in ranks) / len(ranks)
    yield (
        counted(len(ranks), "rank")
        + " · "
        + translate(
            "a step takes {average} ms, longest on rank {rank} ({longest} ms)",
            average=f"{average / 1e6:.1f}",
            rank=longest.rank,
            longest=f"{longest.step_ns / 1e6:.1f}",
        )
    )
    for number, one in enumerate(findings[:_SHOWN], 1):
        share = one.cost_ns / average if average else 0.0
        yield f"  {number}  {milliseconds(one.cost_ns)} ms  {share:.1%}  {one.code}  {said(one.seen)}"
        yield f"     → {said(one.fix)}"
    if len(findings) > _SHOWN:
        yield "  … " + counted(len(findings) - _SHOWN, "more finding")
    if not findings:
        yield "  " + translate("no rank, link or stage stands out")
    yield translate("the latest ranks (ms a step): {ranks}", ranks=_latest(ranks, late))


def _latest(ranks: Sequence[RankSummary], late: dict[int, int]) -> str:
    latest = sorted(ranks, key=lambda one: -late[one.rank])[:_SHOWN]
    return ", ".join(f"{one.rank} ({late[one.rank] / 1e6:+.1f})" for one in latest)


def _as_json(ranks: Sequence[RankSummary], late: dict[int, int], findings: Sequence[RanksFinding]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "ranks": [
            {
                "rank": one.rank,
                "path": str(one.path),
                "steps": one.steps,
                "step_ms": one.step_ns / 1e6,
                "computing_ms": one.computing_ns / 1e6,
                "communication_ms": one.communication_ns / 1e6,
                "bubble_ms": one.bubble_ns / 1e6,
                "late_ms": late[one.rank] / 1e6,
                "peak_reserved_bytes": one.peak_bytes,
                "parts_ms": {name: time / 1e6 for name, time in one.parts.items()},
                "groups": [{"name": name, "ranks": list(members)} for name, members in one.groups],
            }
            for one in ranks
        ],
        "links": [
            {
                "recorded_by": one.rank, "source": source, "destination": destination, "kind": kind,
                "bytes": moved.bytes, "ms": moved.time_ns / 1e6, "gb_per_s": moved.rate,
            }
            for one in ranks
            for (source, destination, kind), moved in sorted(one.links.items())
        ],
        "findings": [
            {
                "code": one.code, "name": one.name, "seen": str(one.seen), "fix": str(one.fix),
                "cost_ms": one.cost_ns / 1e6, "confidence": one.confidence.value, "ranks": list(one.ranks),
                "details": dict(one.details),
            }
            for one in findings
        ],
    }  # fmt: skip
