"""Run a command on the simulated NPU.

One line says what it is; the child gets the environment; signals and exit codes pass through.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from npuport.report.language import translate
from npuport.report.run_summary import run_summary
from npuport.sim import SimOptions, SimulationUnavailable, environment
from npuport.sim.recorder import process
from npuport.sim.recorder.document import Run, build
from npuport.sim.recorder.gather import check_reports, records, write_report
from npuport.sim.requirements import check

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    command: Sequence[str], options: SimOptions, reports: Sequence[Path] = (), *, shown: Sequence[str] | None = None
) -> int:
    """Run ``command`` as a child process on the simulated NPU and return its exit code (128 + n if signal n ended it).

    A command that is a Python file gets the running interpreter in front, and so does ``python`` where there is none.
    ``reports`` (.html, .json) are written when it has ended, and a summary is printed; in a terminal always. ``shown``
    is the command as the user wrote it.

    Raises:
        SimulationUnavailable: the machine lacks something, or the command's interpreter does.
        FileNotFoundError: there is no such command.
        ValueError: a report cannot be written where it is wanted.
    """
    check_reports(reports)
    arguments = _with_interpreter(command)
    say(announcement(options))
    installation = check()
    variables = {**os.environ, **environment(options, say)}
    _check_interpreter(arguments[0], variables)
    recorded = bool(reports) or sys.stderr.isatty()
    with tempfile.TemporaryDirectory(prefix="npuport-run-", ignore_cleanup_errors=True) as directory:
        # Where ranks meet, and where processes leave their records.
        variables |= {process.DIRECTORY: directory, process.WANTED: str(int(recorded))}
        code = _run_child(arguments, variables)
        if recorded:
            facts = Run(
                command=shown or command,
                chip=options.chip,
                devices=options.devices,
                memory_gib=options.memory_gib or 0,
                torch=installation.torch,
                torch_npu=installation.torch_npu,
                exit_code=code,
            )
            _report(build(facts, records(Path(directory))), reports)
    return code


def _report(document: dict[str, Any], reports: Sequence[Path]) -> None:
    written = [str(path) for path in reports if _written(document, path)]
    first, *rest = run_summary(document, written)
    say(first)
    for line in rest:
        print(f"         {line}", file=sys.stderr, flush=True)


def _written(document: dict[str, Any], path: Path) -> bool:
    try:
        write_report(document, path)
    except OSError as error:
        say(translate("{path} was not written: {reason}", path=path, reason=error.strerror or error))
        return False
    return True


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


def say(message: str) -> None:
    """One line of npuport's own, on stderr."""
    print(f"npuport: {message}", file=sys.stderr, flush=True)


def _with_interpreter(command: Sequence[str]) -> list[str]:
    if not command:
        raise ValueError("no command was given; for example: npuport run --sim -- python train.py")
    first = command[0]
    if first.endswith(".py"):
        return [sys.executable, *command]
    if first in ("python", "python3") and shutil.which(first) is None:
        return [sys.executable, *command[1:]]
    if shutil.which(first) is None:
        raise FileNotFoundError(f"there is no command {first!r} on this machine; check the spelling and PATH")
    return list(command)


def _check_interpreter(program: str, variables: dict[str, str]) -> None:
    """Another Python than ours must have npuport and torch_npu too: its torch loads the simulation from there."""
    path = _interpreter_of(program)
    if path is None or _same_program(path, sys.executable):
        return
    probe = (
        "import importlib.util as u, sys\n"
        "sys.exit(','.join(n for n in ('npuport', 'torch', 'torch_npu') if u.find_spec(n) is None) or None)"
    )
    done = subprocess.run([path, "-c", probe], env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        lacking = done.stderr.strip().replace(",", ", ") or "something"
        raise SimulationUnavailable(
            f"{path} does not have {lacking}; npuport itself runs in {sys.executable}.",
            f"{path} -m pip install npuport torch torch-npu   or start the script with {sys.executable}",
        )


def _interpreter_of(program: str) -> str | None:
    """The Python that runs ``program``: itself, or the one in the first line of a script such as torchrun."""
    path = shutil.which(program)
    if path is None or Path(path).name.startswith("python"):
        return path
    with Path(path).open("rb") as file:
        first = file.readline(500)
    words = first[2:].decode(errors="replace").split() if first.startswith(b"#!") else []
    python = next((word for word in words if Path(word).name.startswith("python")), None)
    return shutil.which(python) if python else None


def _same_program(one: str, other: str) -> bool:
    # The path as it is called decides which environment a Python belongs to; links of a virtual environment must not
    # be resolved.
    return Path(one).absolute() == Path(other).absolute() or (
        Path(one).absolute().parent == Path(other).absolute().parent and Path(one).resolve() == Path(other).resolve()
    )


def _run_child(arguments: Sequence[str], variables: dict[str, str]) -> int:
    child = subprocess.Popen(arguments, env=variables)

    def forward(number: int, _frame: object) -> None:
        # Ctrl-C at a terminal reaches the whole group: the child has it already, and a second one would cut its
        # clean-up short.
        if not (number == signal.SIGINT and _in_foreground()):
            child.send_signal(number)

    previous = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        code = child.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
