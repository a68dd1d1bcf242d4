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
            help="Record every operator call with its tensors, for `npuport precision compare`; copies all of a step.",
        ),
    ] = None,
    dump_steps: Annotated[
        str, typer.Option("--dump-steps", metavar="N[-M]", help="Which optimizer steps, counted from 0.")
    ] = "0",
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
        _record(dump, dump_steps)
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
    raise SystemExit(code)


def _record(folder: Path, steps: str) -> None:
    """Have every Python process of the run record the steps."""
    import re

    from npuport.precision.operators.starting import FOLDER, STEPS
    from npuport.search_path import STARTUP, first

    match = re.fullmatch(r"(\d+)(?:-(\d+))?", steps)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise UserError("--dump-steps takes a step or a range, such as 0 or 10-12, not {text}", text=steps)
    if any(folder.glob("step*/rank*.pt")):
        raise UserError("{path} holds recorded steps already: choose another folder, or remove them.", path=folder)
    last = int(match[2] or match[1])
    os.environ.update(
        {FOLDER: str(folder.resolve()), STEPS: f"{match[1]}:{last + 1}", "PYTHONPATH": first(STARTUP, "PYTHONPATH")}
    )


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
