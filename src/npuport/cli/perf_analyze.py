"""`npuport perf analyze`: the parts of the steps and the findings, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npuport.cli.shared import CLEAN, FINDINGS, MISUSE, talk, write_aside

if TYPE_CHECKING:
    from npuport.performance.analysis import RankAnalysis
    from npuport.performance.findings.base import PerformanceFinding
    from npuport.performance.metrics import Asked
    from npuport.performance.step_split import Part
    from npuport.performance.tables import Problem

SCHEMA = "npuport-performance/1"


def analyze_profiles(
    paths: Sequence[Path], asked: Asked | None = None, *, everything: bool, as_json: bool, html: Path | None = None
) -> int:
    """Analyse each profile under the paths, and write the page where one is wanted; the exit code."""
    from npuport.cli.perf_metrics import metrics_line
    from npuport.cli.perf_page import DETAILED, page_of, rank_on_page
    from npuport.performance.analysis import analyse

    documents = []
    pages: list[dict[str, Any]] = []
    problems: list[Problem] = []
    found = False
    for rank in analyse(paths, asked):
        findings = rank.findings if everything else rank.weighty()
        found |= bool(rank.weighty())
        problems += rank.profile.problems
        if html is not None:
            notes = [metrics_line(rank.metrics) if rank.metrics else "", _slowing(rank)]
            pages.append(rank_on_page(rank, findings, _title(rank), notes, detailed=len(pages) < DETAILED))
        if as_json:
            documents.append(_as_json(rank, findings))
        else:
            print("\n".join(_as_text(rank, findings, everything=everything)))
    if as_json:
        print(json.dumps({"schema": SCHEMA, "profiles": documents}, ensure_ascii=False, indent=2))
    if html is not None:
        write_aside(html, page_of(pages, problems).encode())
    name_problems(problems)
    return MISUSE if problems else FINDINGS if found else CLEAN


def name_problems(problems: Sequence[Problem]) -> None:
    """Say on stderr what could not be read."""
    from npuport.report.doctor_text import said
    from npuport.report.text import printable

    for one in problems:
        talk(f"{printable(str(one.path))}: {said(one.reason)}")


def _as_text(rank: RankAnalysis, findings: Sequence[PerformanceFinding], *, everything: bool) -> Iterator[str]:
    from npuport.cli.perf_metrics import memory_lines, metrics_line
    from npuport.performance.analysis import together
    from npuport.report.language import counted, translate

    yield _title(rank)
    if not rank.splits:
        yield "  " + translate("no step was found")
        return
    yield translate("step {time} ms", time=_ms(rank.step_ns)) + " = " + " · ".join(_parts(rank))
    if rank.metrics and (known := metrics_line(rank.metrics)):
        yield "  " + known
    if slowing := _slowing(rank):
        yield "  " + slowing
    for number, finding in enumerate(findings, 1):
        yield from _finding(rank, number, finding)
    if hidden := len(rank.findings) - len(findings):
        smaller = counted(hidden, "finding")
        yield "  " + translate("{findings} below 1 % of the step: --all shows them", findings=smaller)
    if everything and rank.metrics:
        yield from memory_lines(rank.metrics)
    if not findings:
        return
    pairs = _overlaps(findings)
    if pairs:
        yield "  " + translate(
            "{pairs} explain the same time: their gains do not add up. All together at most {time} ms.",
            pairs=pairs,
            time=_ms(together(findings, len(rank.splits))),
        )


def _title(rank: RankAnalysis) -> str:
    from npuport.report.language import counted, translate
    from npuport.report.text import printable

    profile = rank.profile
    words = [printable(profile.path.name)]
    if profile.rank is not None:
        words.append(translate("rank {rank}", rank=profile.rank))
    words += [profile.device.upper(), *(f"{name} {version}" for name, version in profile.versions.items())]
    unmarked = any(one.step is None for one in rank.splits)
    steps = translate("no step is marked: all of it counts as one") if unmarked else counted(len(rank.splits), "step")
    return " · ".join([*words, steps])


def _slowing(rank: RankAnalysis) -> str:
    """What the profiler recorded that slows the host down; empty if nothing does."""
    from npuport.report.language import translate

    words = {
        "stacks": translate("Python stacks"),
        "memory": translate("allocations of memory"),
        "shapes": translate("shapes of tensors"),
    }
    heavy = ", ".join(word for name, word in words.items() if rank.profile.settings.get(name))
    return translate("recorded with {what}: without, the host is faster", what=heavy) if heavy else ""


def _parts(rank: RankAnalysis) -> Iterator[str]:
    """The parts of an average step; communication and idleness with what they consist of."""
    from npuport.performance.step_split import COMMUNICATING, IDLE, Part
    from npuport.report.language import translate

    average = _average_parts(rank)
    for part in Part:
        if part in average and part not in COMMUNICATING and part not in IDLE:
            yield f"{translate(part.value)} {_ms(average[part])}"
    for name, members in ((translate("communication"), COMMUNICATING), (translate("idle"), IDLE)):
        inside = [(part, average[part]) for part in members if part in average]
        if not inside:
            continue
        listed = sorted(inside, key=lambda one: -one[1])
        words = [f"{translate(part.value)} {_ms(time)}" for part, time in listed if part is not Part.COMMUNICATION]
        overlapped = sum(one.overlapped for one in rank.splits) // len(rank.splits)
        if members is COMMUNICATING and overlapped:
            words.append(translate("behind computing {time} more", time=_ms(overlapped)))
        whole = f"{name} {_ms(sum(time for _, time in inside))}"
        yield f"{whole} ({', '.join(words)})" if words else whole


def _average_parts(rank: RankAnalysis) -> dict[Part, int]:
    """The parts of an average step in nanoseconds."""
    sums: dict[Part, int] = {}
    for split in rank.splits:
        for part, time in split.parts.items():
            sums[part] = sums.get(part, 0) + time
    return {part: time // len(rank.splits) for part, time in sums.items()}


def _finding(rank: RankAnalysis, number: int, finding: PerformanceFinding) -> Iterator[str]:
    from npuport.cli.perf_metrics import saved_memory
    from npuport.report.doctor_text import said
    from npuport.report.language import translate
    from npuport.report.text import printable

    gain = translate("up to -{time} ms", time=_ms(finding.gain_ns)) + f"  {rank.share(finding):.1%}"
    place = printable(Path(finding.line).name) + "  " if finding.line else ""
    yield f"  {number}  {saved_memory(finding) or gain}  {finding.code}  {place}{said(finding.seen)}"
    yield f"     → {said(finding.fix)}"


def _overlaps(findings: Sequence[PerformanceFinding]) -> str:
    """``1 and 2, 3 and 4``: the findings that explain the same time."""
    from npuport.performance.analysis import overlapping
    from npuport.report.language import translate

    pairs = overlapping(findings)
    return ", ".join(translate("{one} and {other}", one=i + 1, other=j + 1) for i, j in pairs)


def _ms(time: int) -> str:
    return f"{time / 1e6:,.1f}" if time >= 1e6 else f"{time / 1e6:.2f}"


def _as_json(rank: RankAnalysis, findings: Sequence[PerformanceFinding]) -> dict[str, Any]:
    from npuport.cli.perf_metrics import metrics_json
    from npuport.performance.analysis import overlapping, together

    profile = rank.profile
    return {
        "path": str(profile.path),
        "origin": profile.origin,
        "device": profile.device,
        "rank": profile.rank,
        "versions": dict(profile.versions),
        "step_ns": rank.step_ns,
        "steps": [
            {
                "step": one.step,
                "start_ns": one.start_ns,
                "duration_ns": one.duration,
                "parts_ns": {part.name.lower(): time for part, time in one.parts.items()},
                "computing_ns": one.computing,
                "communication_ns": one.communication,
                "overlapped_ns": one.overlapped,
                "transmit_ns": one.transmit,
                "wait_ns": one.wait,
            }
            for one in rank.splits
        ],
        "metrics": metrics_json(rank.metrics) if rank.metrics else None,
        "findings": [_finding_json(rank, one) for one in findings],
        "overlapping": overlapping(findings),
        "together_ns": together(findings, len(rank.splits)),
        "problems": [{"path": str(one.path), "reason": str(one.reason)} for one in profile.problems],
    }


def _finding_json(rank: RankAnalysis, finding: PerformanceFinding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "seen": str(finding.seen),
        "line": finding.line or None,
        "cost_ns": finding.cost_ns,
        "gain_ns": finding.gain_ns,
        "share": rank.share(finding),
        "saved_bytes": finding.saved_bytes,
        "confidence": finding.confidence.value,
        "fix": str(finding.fix),
        "check": str(finding.check),
        "events": list(finding.events),
        "evidence_table": finding.evidence_table,
        "details": dict(finding.details),
        "basis": str(finding.basis) if finding.basis is not None else None,
    }
