"""The page of `npuport perf analyze --html`: what the analysis found, as the plain values that the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuport.performance.analysis import RankAnalysis
    from npuport.performance.findings.base import PerformanceFinding
    from npuport.performance.tables import Problem

DETAILED = 8  # profiles whose timelines and tables are on the page


def rank_on_page(
    rank: RankAnalysis, findings: Sequence[PerformanceFinding], title: str, notes: Sequence[str], *, detailed: bool
) -> dict[str, Any]:
    """One profile as the page shows it, sentences in the user's language."""
    from npuport.performance.analysis import overlapping, together
    from npuport.performance.page_data import average_step, details_data
    from npuport.report.language import translate
    from npuport.report.text import printable

    profile = rank.profile
    name = printable(profile.path.name)
    return {
        "name": name,
        "short": name if profile.rank is None else translate("rank {rank}", rank=profile.rank),
        "title": title,
        "notes": notes,
        "device": profile.device,
        "step_ns": rank.step_ns,
        "average": average_step(rank),
        "findings": [_finding(rank, one) for one in findings],
        "overlapping": overlapping(findings),
        "together": together(findings, len(rank.splits)),
        "hidden": len(rank.findings) - len(findings),
        "details": details_data(rank, findings) if detailed else None,
    }


def _finding(rank: RankAnalysis, one: PerformanceFinding) -> dict[str, Any]:
    from npuport.cli.perf_metrics import saved_memory
    from npuport.report.doctor_text import said
    from npuport.report.text import printable

    line = printable(one.line)
    return {
        "code": one.code,
        "place": Path(line).name if line else "",
        "line": line,
        "seen": said(one.seen),
        "fix": said(one.fix),
        "check": said(one.check),
        "cost_ns": one.cost_ns,
        "gain_ns": one.gain_ns,
        "share": rank.share(one),
        "saved": saved_memory(one),
        "confidence": one.confidence.value,
        "basis": str(one.basis) if one.basis is not None else "",
        "events": len(one.events),
        "evidence_table": one.evidence_table,
    }


def page_of(ranks: Sequence[dict[str, Any]], problems: Sequence[Problem]) -> str:
    """The page of all profiles."""
    from npuport.performance.step_split import COMMUNICATING, IDLE, Part
    from npuport.report.doctor_text import said
    from npuport.report.language import translate
    from npuport.report.perf_page import perf_page
    from npuport.report.text import printable

    groups = dict.fromkeys(COMMUNICATING, "communication") | dict.fromkeys(IDLE, "idle")
    parts = [
        {"key": part.name.lower(), "name": translate(part.value), "group": groups.get(part, "computing")}
        for part in Part
    ]
    return perf_page(ranks, parts, [(printable(str(one.path)), said(one.reason)) for one in problems])
