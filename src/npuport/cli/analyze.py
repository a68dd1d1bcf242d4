"""`npuport analyze`: what a source tree needs before it trains on an NPU."""

from __future__ import annotations

import enum
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npuport.cli.shared import (
    CLEAN,
    FINDINGS,
    MISUSE,
    codes,
    findings_cache,
    make_settings,
    name_skipped,
    progress,
    suited,
    talk,
    write_aside,
)
from npuport.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from npuport.analysis import Analysis
    from npuport.findings import Finding
    from npuport.source.files import SourceFile, Tree


_IN_TEXT = "NP901"  # words of CUDA in texts and comments: complete, and seldom what one looks for first


class Format(str, enum.Enum):
    """How findings are shown."""

    SUMMARY = "summary"
    FULL = "full"
    CONCISE = "concise"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    MARKDOWN = "markdown"


class Target(str, enum.Enum):
    """What the fixes aim at."""

    NPU = "npu"
    AGNOSTIC = "agnostic"


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
    as_json: Annotated[
        bool, typer.Option("--json", help="The same as --format json: schema npuport-analysis/1.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write the findings as one HTML page.")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="DIR", help="Also write CSV files with the vendor tool's names and columns."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Leave out the findings that FILE holds.")
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option("--write-baseline", metavar="FILE", help="Write the findings to FILE as a baseline.")
    ] = None,
    run_report: Annotated[
        Path | None,
        typer.Option("--run-report", metavar="FILE", help="Confirm or clear waits and sizes by a run's report (JSON)."),
    ] = None,
    target: Annotated[
        Target | None,
        typer.Option(
            "--target",
            help="What the fixes aim at: npu or agnostic (CUDA, NPU and CPU). By default agnostic for libraries.",
            show_default=False,
        ),
    ] = None,
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
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Check every file anew, and keep nothing for the next run.")
    ] = False,
) -> None:
    """Say what will not work on an NPU, what must change, and what it takes.

    Exit codes: 0 nothing as severe as --fail-on; 1 findings; 2 misuse, or input that could not be read.
    """
    from npuport.analysis import analyze as run_rules
    from npuport.analysis import fold
    from npuport.analysis import select as choose
    from npuport.source.files import read_tree

    if as_json and output not in (Format.SUMMARY, Format.JSON):
        raise UserError("--json and --format exclude each other. Give one of them.")
    settings = make_settings(target.value if target else "npu", torch_version, chip)
    tree = read_tree(path)
    if target is None and path.is_dir():
        settings = suited(settings, tree)
    with progress(len(tree.files), "reading") as advance:
        analysis = run_rules(tree, settings, jobs, advance, None if no_cache else findings_cache(path))
    if run_report is not None:
        analysis = _with_run(run_report, analysis, tree)
    findings = choose(analysis.findings, codes(select or ()), codes(ignore or ()))
    if write_baseline is not None:
        _write_baseline(write_baseline, findings, tree)
    if baseline is not None:
        findings = _without_known(baseline, findings, tree)
    if csv is not None:
        _write_csv(csv, findings)
    if not select:
        findings = fold(findings)
    if html is not None:
        _write_page(html, path, analysis, findings, tree)
    _print(Format.JSON if as_json else output, path, analysis, findings, tree)
    sys.stdout.flush()
    name_skipped(analysis.skipped, analysis.failures)
    raise SystemExit(_exit_code(analysis, findings, fail_on))


def _print(output: Format, path: Path, analysis: Analysis, findings: Sequence[Finding], tree: Tree) -> None:
    if output is Format.JSON:
        _print_json(path, analysis, findings)
    elif output is Format.SARIF:
        _print_sarif(analysis, findings, tree)
    elif output is Format.GITHUB:
        _print_annotations(path, findings)
    elif output is Format.MARKDOWN:
        _print_markdown(path, findings)
    elif output is Format.CONCISE:
        _print_concise(findings)
    elif output is Format.FULL:
        _print_full(findings, tree)
    else:
        _print_summary(path, analysis, findings)


def _with_run(place: Path, analysis: Analysis, tree: Tree) -> Analysis:
    from dataclasses import replace

    from npuport.analysis.run_report import joined, read_run_report

    report = read_run_report(place, (file.path for file in tree.files))
    return replace(analysis, findings=joined(analysis.findings, report))


def _write_baseline(place: Path, findings: Sequence[Finding], tree: Tree) -> None:
    from npuport.analysis.baseline import baseline_json
    from npuport.report.fingerprints import fingerprints
    from npuport.report.language import counted, translate

    write_aside(place, baseline_json(findings, fingerprints(findings, _sources(tree))))
    talk(translate("{findings} written to {path}", findings=counted(len(findings), "finding"), path=place))


def _without_known(place: Path, findings: Sequence[Finding], tree: Tree) -> tuple[Finding, ...]:
    from npuport.analysis.baseline import compare
    from npuport.report.fingerprints import fingerprints
    from npuport.report.language import counted, translate

    compared = compare(findings, fingerprints(findings, _sources(tree)), place)
    if compared.hidden:
        talk(translate("{findings} in {path} left out", findings=counted(compared.hidden, "finding"), path=place))
    if compared.gone:
        again = translate(
            "{findings} in {path} no longer there", findings=counted(compared.gone, "finding"), path=place
        )
        talk(f"{again}: --write-baseline {place}")
    return compared.new


def _sources(tree: Tree) -> dict[str, SourceFile]:
    return {file.path: file for file in tree.files}


def _write_page(place: Path, path: Path, analysis: Analysis, findings: Sequence[Finding], tree: Tree) -> None:
    from npuport.analysis import effort_by_file
    from npuport.report.port_page import port_page
    from npuport.report.summary import file_counts

    settings = analysis.settings
    files = file_counts({kind.value: number for kind, number in analysis.files.items()})
    about = f"{files} · torch {settings.torch_version} · {settings.chip} · --target {settings.target}"
    page = port_page(path.resolve().name or str(path), about, findings, _sources(tree), effort_by_file(findings))
    write_aside(place, page.encode("utf-8", "backslashreplace"))


def _write_csv(place: Path, findings: Sequence[Finding]) -> None:
    from npuport.report.formats.vendor_csv import vendor_csv

    if place.exists() and not place.is_dir():
        raise UserError("{path} is a file, and --csv needs a directory.", path=place)
    for name, data in vendor_csv(findings).items():
        write_aside(place / name, data)


def _print_sarif(analysis: Analysis, findings: Sequence[Finding], tree: Tree) -> None:
    from npuport.cli.documents import rule_help
    from npuport.report.formats.sarif import sarif

    unread = [(one.path, one.reason) for one in analysis.skipped if one.unreadable]
    unread += [(one.path, one.message) for one in analysis.failures]
    print(sarif(findings, _sources(tree), rule_help(), unread), end="")


def _print_annotations(path: Path, findings: Sequence[Finding]) -> None:
    """Paths as seen from where the command runs: on GitHub that is the top of the repository."""
    from npuport.report.formats.github import annotation

    folder = path if path.is_dir() else path.parent
    try:
        root = folder.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        root = folder.as_posix()
    for finding in findings:
        print(annotation(finding, "" if root == "." else f"{root}/"))


def _print_markdown(path: Path, findings: Sequence[Finding]) -> None:
    from npuport.analysis import effort_by_file
    from npuport.report.formats.markdown import markdown

    print(markdown(path.resolve().name or str(path), findings, effort_by_file(findings)), end="")


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
    for line in full(findings, _sources(tree), screen.width):
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
    shown = shlex.quote(target)
    steps = [f"npuport analyze {shown} --format full        {about_full}"]
    if convertible:
        aside = f"{target}-npu" if path.is_dir() and path.name not in ("", "..") else f"../{path.resolve().name}-npu"
        how = f"-o {shlex.quote(aside)}" if path.is_dir() else "--diff"
        steps.insert(0, f"npuport convert {shown} {how}")
    for number, step in enumerate(steps):
        print(f"{lead if number == 0 else ' ' * cell_len(lead)}   {step}")
