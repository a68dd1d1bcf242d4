"""Run a command on the simulated NPU.

One line says what it is; the child gets the environment; signals and exit codes pass through.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from npuport import processes
from npuport.report.run_files import check_reports, say, written
from npuport.report.run_page import run_page
from npuport.report.run_summary import run_summary
from npuport.sim import SimOptions, SimulationUnavailable, environment
from npuport.sim.recorder import process
from npuport.sim.recorder.document import Run, build
from npuport.sim.recorder.gather import records
from npuport.sim.requirements import check


def run(
    command: Sequence[str],
    options: SimOptions,
    reports: Sequence[Path] = (),
    *,
    summary: bool = False,
    variables: Mapping[str, str] | None = None,
    migration: Callable[[], Mapping[str, Any]] | None = None,
) -> int:
    """Run ``command`` as a child process on the simulated NPU and return its exit code (128 + n if signal n ended it).

    A command that is a Python file gets the running interpreter in front, and so does ``python`` where there is none.
    ``reports`` (.html, .json) are written when it has ended, and a summary is printed; in a terminal always, elsewhere
    on request. ``variables`` are added to the child's environment. ``migration`` is asked in the end for what became of
    CUDA code.

    Raises:
        SimulationUnavailable: the machine lacks something, or the command's interpreter does.
        FileNotFoundError: there is no such command.
        ValueError: a report cannot be written where it is wanted.
    """
    check_reports(reports)
    arguments = processes.with_interpreter(command)
    say(announcement(options))
    installation = check()
    inside = {**os.environ, **environment(options, say), **(variables or {})}
    _check_interpreter(arguments[0], inside)
    recorded = bool(reports) or summary or sys.stderr.isatty()
    with tempfile.TemporaryDirectory(prefix="npuport-run-", ignore_cleanup_errors=True) as directory:
        # Where ranks meet, and where processes leave their records.
        inside |= {process.DIRECTORY: directory, process.WANTED: str(int(recorded))}
        code = processes.run_child(arguments, inside)
        if recorded:
            facts = Run(
                command=command,
                chip=options.chip,
                devices=options.devices,
                memory_gib=options.memory_gib or 0,
                torch=installation.torch,
                torch_npu=installation.torch_npu,
                exit_code=code,
            )
            _report(build(facts, records(Path(directory)), migration() if migration else None), reports)
    return code


def _report(document: dict[str, Any], reports: Sequence[Path]) -> None:
    say(*run_summary(document, written(document, reports, run_page)))


def announcement(options: SimOptions) -> str:
    """What is simulated, and how: whoever starts a simulated run says so.

    Raises:
        SimulationUnavailable: the machine lacks something.
    """
    count = "" if options.devices == 1 else f"{options.devices} x "
    return (
        f"simulated {count}{options.chip} ({options.memory_gib} GiB), results computed by CPU kernels "
        f"through torch_npu {check().torch_npu}; times are not NPU times"
    )


def _check_interpreter(program: str, variables: Mapping[str, str]) -> None:
    """Another Python than ours must have npuport and torch_npu too: its torch loads the simulation from there."""
    python = processes.other_python(program)
    missing = processes.lacking(python, ("npuport", "torch", "torch_npu"), variables) if python else []
    if missing:
        raise SimulationUnavailable(
            f"{python} does not have {', '.join(missing)}; npuport itself runs in {sys.executable}.",
            f"{python} -m pip install npuport torch torch-npu   or start the script with {sys.executable}",
        )
