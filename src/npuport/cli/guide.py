"""`npuport guide`: what to do by hand for one tree, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npuport.cli.shared import CLEAN, MISUSE, likely_script, make_settings, name_skipped, progress, suited, write_aside


def guide(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A directory or a file.", show_default=False)],
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the guide here instead of to stdout.")
    ] = None,
    target: Annotated[
        str, typer.Option("--target", metavar="T", help="npu or agnostic; by default agnostic for libraries.")
    ] = "",
    torch_version: Annotated[
        str, typer.Option("--torch", metavar="V", help="The version of torch to port to.")
    ] = "2.13.0",
    chip: Annotated[str, typer.Option("--chip", metavar="C", help="The Ascend chip.")] = "Ascend910B3",
) -> None:
    """Write a migration guide for this very tree, in Markdown: environment, libraries, every edit with its reason."""
    from npuport.analysis import analyze as run_rules
    from npuport.cli.documents import rule_help
    from npuport.facts import torch_npu_for
    from npuport.report.formats.guide import GuideFacts
    from npuport.report.formats.guide import guide as render
    from npuport.source.files import read_tree

    settings = make_settings(target or "npu", torch_version, chip)
    tree = read_tree(path)
    if not target and path.is_dir():
        settings = suited(settings, tree)
    with progress(len(tree.files), "reading") as advance:
        analysis = run_rules(tree, settings, None, advance)
    releases = torch_npu_for(torch_version)
    facts = GuideFacts(
        name=path.resolve().name or str(path),
        path=str(path),
        torch_version=torch_version,
        torch_npu_version=releases[0].torch_npu if releases else None,
        chip=chip,
        script=likely_script(tree),
    )
    text = render(facts, analysis.findings, {file.path: file for file in tree.files}, rule_help())
    if output is not None:
        write_aside(output, text.encode("utf-8", "backslashreplace"))
    else:
        print(text, end="")
    name_skipped(analysis.skipped, analysis.failures)
    raise SystemExit(CLEAN if analysis.complete else MISUSE)
