"""`npuport run`: start a CUDA training command on the NPU, or on the simulated NPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from npuport.errors import UserError


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND…", help="What to run, after --.", show_default=False)
    ],
    module: Annotated[
        bool, typer.Option("-m", help="COMMAND is a Python module and its arguments, as with python -m.")
    ] = False,
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also", metavar="PACKAGE", help="An installed package to convert too; can be given several times."
        ),
    ] = None,
    sim: Annotated[bool, typer.Option("--sim", help="On the simulated NPU: no Ascend hardware is needed.")] = False,
    devices: Annotated[int, typer.Option("--devices", min=1, metavar="N", help="Simulated devices.")] = 1,
    chip: Annotated[str, typer.Option("--chip", metavar="C", help="The simulated chip.")] = "Ascend910B3",
    memory: Annotated[
        int | None, typer.Option("--memory", min=1, metavar="GIB", help="Memory of a simulated chip, in GiB.")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="What the chip refuses, and with --deterministic what has no deterministic form, is an error, not a "
            "warning.",
        ),
    ] = False,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="What became of CUDA code and, with --sim, what the run did; as .html or .json; can be given twice.",
        ),
    ] = None,
    summary: Annotated[bool, typer.Option("--summary", help="A few lines of the same on stderr, in the end.")] = False,
    dump: Annotated[
        Path | None,
        typer.Option(
            "--dump",
            metavar="DIR",
            help="Record the operator calls of training steps, for `npuport precision compare`.",
        ),
    ] = None,
    dump_what: Annotated[
        str,
        typer.Option(
            "--dump-what",
            metavar="tensors|statistics|checksums",
            help="All values; or max, min, mean, norm and counts of NaN and infinite; or these and checksums.",
        ),
    ] = "tensors",
    dump_steps: Annotated[
        str | None,
        typer.Option("--dump-steps", metavar="N[-M]", help="Which optimizer steps, counted from 0.", show_default="0"),
    ] = None,
    dump_ranks: Annotated[str, typer.Option("--dump-ranks", metavar="N[-M]", help="Only these ranks.")] = "",
    dump_modules: Annotated[
        str, typer.Option("--dump-modules", metavar="PATTERNS", help="Only in these modules, such as layers.0,*.attn.")
    ] = "",
    dump_operators: Annotated[
        str, typer.Option("--dump-operators", metavar="PATTERNS", help="Only these operators, such as aten.mm,c10d.*.")
    ] = "",
    dump_phases: Annotated[
        str, typer.Option("--dump-phases", metavar="PHASES", help="Only these of forward,backward,optimizer.")
    ] = "",
    dump_when: Annotated[
        str,
        typer.Option(
            "--dump-when",
            metavar="nan|spike",
            help="Only the first step in which a value is no number, or the loss jumps, and the one before it.",
        ),
    ] = "",
    profile: Annotated[
        Path | None,
        typer.Option("--profile", metavar="DIR", help="Profile steps, for `npuport perf analyze`."),
    ] = None,
    profile_steps: Annotated[
        str, typer.Option("--profile-steps", metavar="N[-M]", help="Which optimizer steps, counted from 0.")
    ] = "10-11",
    profile_level: Annotated[
        int,
        typer.Option(
            "--profile-level",
            min=0,
            max=2,
            metavar="N",
            help="On an NPU: 0 times of kernels, 1 also types, shapes, units and collectives, 2 also AI CPU and cache.",
        ),
    ] = 1,
    profile_with: Annotated[
        str,
        typer.Option(
            "--profile-with", metavar="LIST", help="Of stacks, shapes, memory; or nothing. Lines of code need stacks."
        ),
    ] = "stacks,shapes",
    profile_ranks: Annotated[
        str, typer.Option("--profile-ranks", metavar="LIST", help="Such as 0,8-15.", show_default="all")
    ] = "",
    preflight: Annotated[
        Path | None,
        typer.Option(
            "--preflight",
            metavar="DIR",
            help="Write down what the training is made of, for `npuport precision preflight`.",
        ),
    ] = None,
    monitor: Annotated[
        Path | None,
        typer.Option(
            "--monitor",
            metavar="DIR",
            help="Write down gradients, weights, updates and loss of every step, for `npuport precision state`.",
        ),
    ] = None,
    deterministic: Annotated[
        bool,
        typer.Option("--deterministic", help="Seed everything, and set all switches for computing the same again."),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="The seed of --deterministic.")] = 0,
    no_dropout: Annotated[
        bool, typer.Option("--no-dropout", help="With --deterministic: dropout hands its input on.")
    ] = False,
) -> None:
    """Run a command; its exit code is this command's.

    CUDA code in the Python scripts that it runs, and in the modules that they import from their project, is converted
    in memory; no file changes. So it is in every Python process under the command: torchrun's, a shell script's, those
    of multiprocessing.

    Example: npuport run --sim -- python train.py
    """
    if module:
        command = [sys.executable, "-m", *command]
    if dump is not None:
        from npuport.cli.run_recording import record

        scope = {"modules": dump_modules, "operators": dump_operators, "phases": dump_phases}
        record(dump, dump_what, dump_steps, dump_ranks, dump_when, scope)
    if profile is not None:
        from npuport.cli.run_profiling import ask_for_profiles

        ask_for_profiles(profile, profile_steps, profile_level, profile_with, profile_ranks)
    _watch(preflight or dump, monitor, deterministic, seed, no_dropout, strict)
    if also:
        from npuport.runtime.importer import ALSO

        os.environ[ALSO] = ",".join(also)
    from npuport.cli.launchers import unreached
    from npuport.cli.shared import talk

    problem = unreached(command)
    if problem is not None:
        talk(f"npuport: {problem}")
    try:
        if sim:
            code = _simulated(command, devices, chip, memory, strict, report or [], summary)
        else:
            code = _real(command, report or [], summary)
    except (ValueError, FileNotFoundError) as error:
        raise UserError("{message}.", message=error) from error
    if profile is not None:
        from npuport.cli.run_profiling import say_what_next

        say_what_next(profile)
    raise SystemExit(code)


def _watch(
    facts: Path | None, state: Path | None, deterministic: bool, seed: int, no_dropout: bool, strict: bool
) -> None:
    from npuport.cli.run_watching import make_deterministic, write_facts, write_state

    if facts is not None:
        write_facts(facts)
    if state is not None:
        write_state(state)
    if deterministic:
        make_deterministic(seed, no_dropout, strict)
    elif no_dropout:
        raise UserError("--no-dropout belongs to --deterministic.")


def _real(command: list[str], reports: list[Path], summary: bool) -> int:
    from npuport.runtime.launch import run as start

    return start(command, reports, summary=summary)


def _simulated(
    command: list[str], devices: int, chip: str, memory: int | None, strict: bool, reports: list[Path], summary: bool
) -> int:
    import tempfile

    from npuport.runtime import migration, notes
    from npuport.runtime.launch import environment
    from npuport.sim import SimOptions, SimulationUnavailable
    from npuport.sim.launch import run as start

    try:
        options = SimOptions(chip=chip, devices=devices, memory_gib=memory, strict=strict)
        with tempfile.TemporaryDirectory(prefix="npuport-notes-", ignore_cleanup_errors=True) as folder:
            variables = environment()
            return start(
                command,
                options,
                reports,
                summary=summary,
                variables={**variables, notes.VARIABLE: folder},
                migration=(lambda: migration.gather(Path(folder))) if variables else None,
            )
    except SimulationUnavailable as error:
        raise UserError("{problem}\n  {next_step}", problem=error.problem, next_step=error.next_step) from error
