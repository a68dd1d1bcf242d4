"""`npuport analyze`: what a source tree needs before it trains on an NPU."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npuport.cli.shared import CLEAN, FINDINGS, MISUSE, codes, make_settings, name_skipped, progress
from npuport.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuport.analysis import Analysis
    from npuport.findings import Finding
    from npuport.source.files import Tree


_IN_TEXT = "NP901"  # words of CUDA in texts and comments: complete, and seldom what one looks for first


class Format(str, enum.Enum):
    """How findings are shown."""

    SUMMARY = "summary"
    FULL = "full"
    CONCISE = "concise"


class FailOn(str, enum.Enum):
    """The mildest severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"
    INFO = "info"
    NEVER = "never"


def analyze(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A directory or a file.", show_default=False)],
    *,
    output: Annotated[Format, typer.Option("--format", help="How to show the findings.")] = Format.SUMMARY,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document, schema npuport-analysis/1.")] = False,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="End with 1 for findings at least this severe.")
    ] = FailOn.ERROR,
    torch_version: Annotated[
        str, typer.Option("--torch", metavar="V", help="The version of torch to port to.")
    ] = "2.13.0",
    chip: Annotated[str, typer.Option("--chip", metavar="C", help="The Ascend chip.")] = "Ascend910B3",
    select: Annotated[
        list[str] | None, typer.Option("--select", metavar="CODES", help="Only these rules: NP2,NP301 or names.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="CODES", help="Not these rules.")] = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, metavar="N", help="Processes; one per processor by default.")
    ] = None,
) -> None:
    """Say what will not work on an NPU, what must change, and what it takes.

    Exit codes: 0 nothing as severe as --fail-on; 1 findings; 2 misuse, or input that could not be read.
    """
    from npuport.analysis import analyze as run_rules
    from npuport.analysis import select as choose
    from npuport.source.files import read_tree

    if as_json and output is not Format.SUMMARY:
        raise UserError("--json and --format exclude each other. Give one of them.")
    settings = make_settings("npu", torch_version, chip)
    tree = read_tree(path)
    with progress(len(tree.files), "reading") as advance:
        analysis = run_rules(tree, settings, jobs, advance)
    findings = choose(analysis.findings, codes(select or ()), codes(ignore or ()))
    if as_json:
        _print_json(path, analysis, findings)
    elif output is Format.CONCISE:
        _print_concise(findings)
    elif output is Format.FULL:
        _print_full(findings, tree)
    else:
        _print_summary(path, analysis, findings)
    sys.stdout.flush()
    name_skipped(analysis.skipped, analysis.failures)
    raise SystemExit(_exit_code(analysis, findings, fail_on))


def _exit_code(analysis: Analysis, findings: Sequence[Finding], fail_on: FailOn) -> int:
    from npuport.findings import Severity

    if not analysis.complete:
        return MISUSE
    if fail_on is FailOn.NEVER:
        return CLEAN
    limit = Severity(fail_on.value).rank
    return FINDINGS if any(finding.severity.rank <= limit for finding in findings) else CLEAN


def _print_json(path: Path, analysis: Analysis, findings: Sequence[Finding]) -> None:
    from dataclasses import asdict

    from npuport.analysis import effort
    from npuport.report.json_report import analysis_json

    settings = analysis.settings
    document = analysis_json(
        root=str(path),
        findings=findings,
        files={kind.value: number for kind, number in analysis.files.items()},
        settings={"target": settings.target, "torch_version": settings.torch_version, "chip": settings.chip},
        effort=asdict(effort(findings)),
        skipped=[asdict(one) for one in analysis.skipped],
        failures=[{"path": one.path, "rule": one.rule, "message": one.message} for one in analysis.failures],
    )
    print(document, end="")


def _print_concise(findings: Sequence[Finding]) -> None:
    from npuport.report.text import concise

    for finding in findings:
        print(concise(finding))


def _print_full(findings: Sequence[Finding], tree: Tree) -> None:
    from npuport.report.text import console, full

    screen = console()
    sources = {file.path: file for file in tree.files}
    for line in full(findings, sources, screen.width):
        screen.print(line)
    safe = sum(finding.fix is not None and finding.fix.applicability.value == "safe" for finding in findings)
    from npuport.report.language import counted, translate

    screen.print(
        translate("{findings}, {safe} with a safe fix", findings=counted(len(findings), "finding"), safe=f"{safe:,}")
    )
    if any(finding.code == _IN_TEXT for finding in findings):
        screen.print(translate("--ignore {code} leaves out texts and comments that only speak of CUDA", code=_IN_TEXT))


def _print_summary(path: Path, analysis: Analysis, findings: Sequence[Finding]) -> None:
    from npuport.analysis import effort
    from npuport.report.language import translate
    from npuport.report.summary import SummaryFacts, summary
    from npuport.report.text import console

    screen = console()
    work = effort(findings)
    facts = SummaryFacts(
        name=path.resolve().name or str(path),
        files={kind.value: number for kind, number in analysis.files.items()},
        torch_version=analysis.settings.torch_version,
        chip=analysis.settings.chip,
        seconds=analysis.seconds,
        automatic=work.automatic,
        to_read=work.to_read,
        by_hand=work.by_hand,
    )
    for line in summary(facts, findings, screen.width):
        screen.print(line)
    if findings:
        _print_next(
            path, translate("Next:"), translate("every finding with its line, reason and fix"), work.automatic > 0
        )


def _print_next(path: Path, lead: str, about_full: str, convertible: bool) -> None:
    from rich.cells import cell_len

    target = str(path).rstrip("/")
    steps = [f"npuport analyze {target} --format full        {about_full}"]
    if convertible:
        aside = f"{target}-npu" if path.is_dir() and path.name not in ("", "..") else f"../{path.resolve().name}-npu"
        steps.insert(0, f"npuport convert {target} -o {aside}" if path.is_dir() else f"npuport convert {target} --diff")
    for number, step in enumerate(steps):
        print(f"{lead if number == 0 else ' ' * cell_len(lead)}   {step}")
