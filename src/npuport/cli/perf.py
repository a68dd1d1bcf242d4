"""`npuport perf`: where the time of a training step goes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npuport.cli.shared import guard

app = typer.Typer(
    help="Say where the time of a training step goes, and what to change.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def perf() -> None:
    """Say where the time of a training step goes, and what to change."""


@app.command(short_help="Divide the steps of profiles, and price what costs time.")
@guard()
def analyze(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Profiles, or folders that hold some.")],
    *,
    all_: Annotated[
        bool, typer.Option("--all", help="Also findings below 1 % of a step, and what holds memory.")
    ] = False,
    samples: Annotated[
        float | None, typer.Option("--samples-per-step", metavar="N", min=0, help="For the throughput in samples.")
    ] = None,
    tokens: Annotated[
        float | None, typer.Option("--tokens-per-step", metavar="N", min=0, help="For the throughput in tokens.")
    ] = None,
    chip: Annotated[str, typer.Option("--chip", metavar="NAME", help="Such as Ascend910B2, where not recorded.")] = "",
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="NAME", help="Of matrix products, such as bfloat16, where not recorded.")
    ] = "",
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write an HTML page.")] = None,
) -> None:
    """Divide the steps of profiles into parts that add up, and price what costs time.

    Reads what torch_npu's profiler and PyTorch's wrote. Exit code 1 when there are findings, 2 when something could not
    be read: it is named, and everything else is analysed.
    """
    from npuport.cli.perf_analyze import analyze_profiles
    from npuport.performance.metrics import Asked

    asked = Asked(samples, tokens, chip, dtype)
    raise SystemExit(analyze_profiles(paths, asked, everything=all_, as_json=json_, html=html))


@app.command(short_help="Say which rank, link or pipeline stage holds a job up.")
@guard()
def ranks(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Profiles of several ranks of one job.")],
    *,
    jobs: Annotated[int, typer.Option("--jobs", min=0, metavar="N", help="Processes.", show_default="all CPUs")] = 0,
    ray: Annotated[bool, typer.Option("--ray", help="Read on a Ray cluster that sees the same paths.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say which rank, link or pipeline stage holds a job up, and by how much.

    Exit code 1 when there are findings, 2 when something could not be read: it is named, and the rest is compared.
    """
    from npuport.cli.perf_ranks import compare_ranks

    raise SystemExit(compare_ranks(paths, jobs=jobs, ray=ray, as_json=json_))


@app.command(short_help="Say what takes longer in one profile than in another.")
@guard()
def compare(
    reference: Annotated[
        Path, typer.Argument(metavar="REFERENCE", help="A GPU's profile, or the one before a change.")
    ],
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE", help="An NPU's profile, or the one after it.")],
    *,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what takes longer in one profile than in another: parts of a step, modules, operators.

    Exit code 1 when something takes more than its share, 2 when something could not be read.
    """
    from npuport.cli.perf_compare import compare_profiles

    raise SystemExit(compare_profiles(reference, candidate, as_json=json_))


@app.command(short_help="Write profiles as Parquet tables, and as traces for Perfetto.")
@guard()
def export(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Profiles, or folders that hold some.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A new folder.")],
    format_: Annotated[str, typer.Option("--format", metavar="parquet|trace|all", help="What to write.")] = "all",
    scrub: Annotated[
        bool, typer.Option("--scrub", help="Without host names, addresses, folders and environment variables.")
    ] = False,
) -> None:
    """Write profiles as Parquet tables, and as traces that Perfetto nests rightly, one folder for each rank.

    Exit code 2 when something could not be read: it is named, and the rest is written.
    """
    from npuport.cli.perf_export import export_profiles

    raise SystemExit(export_profiles(paths, output, format_, scrub=scrub))


@app.command(short_help="Print code that profiles a training loop.")
@guard()
def snippet(
    *,
    gpu: Annotated[bool, typer.Option("--gpu", help="For a GPU or the CPU, not for an NPU.")] = False,
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where profiles go.")] = Path("profile"),
    steps: Annotated[str, typer.Option("--steps", metavar="N[-M]", help="Which steps, counted from 0.")] = "10-11",
    level: Annotated[int, typer.Option("--level", min=0, max=2, metavar="N", help="As run's --profile-level.")] = 1,
    with_: Annotated[
        str, typer.Option("--with", metavar="LIST", help="Of stacks, shapes, memory; or nothing.")
    ] = "stacks,shapes",
) -> None:
    """Print code that profiles what `npuport run --profile` does, for those who would rather edit their script."""
    from npuport.cli.run_profiling import asked
    from npuport.performance.collecting.snippet import snippet as code

    print(code(asked("--", folder, steps, level, with_), on_npu=not gpu), end="")
