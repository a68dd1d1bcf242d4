"""`npuport perf export`: profiles as Parquet tables and as traces for Perfetto."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.cli.shared import CLEAN, MISUSE, talk
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.performance.tables import Problem


def export_profiles(paths: Sequence[Path], output: Path, form: str, *, scrub: bool) -> int:
    """Write each profile under the paths into a folder of its own under ``output``; the exit code."""
    from npuport.cli.perf_analyze import name_problems
    from npuport.performance.exporting.parquet import write_tables
    from npuport.performance.exporting.privacy import scrubbed
    from npuport.performance.exporting.trace import write_trace
    from npuport.performance.findings.base import Context
    from npuport.performance.reading.discover import profiles_under
    from npuport.report.language import translate

    if form not in ("parquet", "trace", "all"):
        raise UserError("--format takes parquet, trace or all, not {given}", given=form)
    if output.is_dir() and any(output.iterdir()):
        raise UserError("{path} is not empty: choose another folder.", path=output)
    problems: list[Problem] = []
    for position, (path, read) in enumerate(profiles_under(paths)):
        profile = scrubbed(read(path)) if scrub else read(path)
        problems += profile.problems
        rank = position if profile.rank is None else profile.rank
        folder = output / f"rank{rank}"
        if folder.exists():
            folder = output / f"rank{rank}-{position}"
        folder.mkdir(parents=True)
        if form != "trace":
            write_tables(profile, folder)
        if form != "parquet":
            write_trace(profile, Context(profile).splits, folder / "trace.json.gz")
        talk("npuport: " + translate("{path} is written to {folder}", path=path, folder=folder))
    name_problems(problems)
    return MISUSE if problems else CLEAN
