"""Processes that npuport starts: which Python runs them, what they find, and how they end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def with_interpreter(command: Sequence[str]) -> list[str]:
    """The command; a Python file gets the running interpreter in front, and so does ``python`` where there is none.

    Raises:
        FileNotFoundError: there is no such command or script.
        ValueError: the command is empty.
    """
    if not command:
        raise ValueError("no command was given; for example: npuport run --sim -- python train.py")
    program, *rest = command
    if program.endswith(".py"):
        _require_script(program)
        return [sys.executable, program, *rest]
    if Path(program).name.startswith("python") and rest and rest[0].endswith(".py"):
        _require_script(rest[0])
    if program in ("python", "python3") and shutil.which(program) is None:
        return [sys.executable, *rest]
    if shutil.which(program) is None and Path(program).is_file():
        raise FileNotFoundError(
            f"{program} is a file that does not start by itself; name what runs it, as in npuport run -- bash {program}"
        )
    if shutil.which(program) is None:
        raise FileNotFoundError(f"there is no command {program!r} on this machine; check the spelling and PATH")
    return list(command)


def _require_script(script: str) -> None:
    if not Path(script).is_file():
        raise FileNotFoundError(f"there is no script {script} in {Path.cwd()}; check the spelling and the folder")


def other_python(program: str) -> str | None:
    """The Python that runs ``program``, itself or through its first line, such as torchrun's; None if it is ours."""
    path = _interpreter_of(program)
    return None if path is None or _same_program(path, sys.executable) else path


def lacking(python: str, packages: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Which of ``packages`` another Python does not have."""
    probe = (
        "import importlib.util as u, sys\n"
        f"sys.exit(','.join(n for n in {tuple(packages)} if u.find_spec(n) is None) or None)"
    )
    environment = {**variables, "NPUPORT_AUTO": "0"}
    done = subprocess.run([python, "-c", probe], env=environment, capture_output=True, text=True, check=False)
    names = done.stderr.strip().splitlines()[-1:] or ["something"]
    return names[0].split(",") if done.returncode else []


def _interpreter_of(program: str) -> str | None:
    path = shutil.which(program)
    if path is None or Path(path).name.startswith("python"):
        return path
    with Path(path).open("rb") as file:
        line = file.readline(500)
    words = line[2:].decode(errors="replace").split() if line.startswith(b"#!") else []
    python = next((word for word in words if Path(word).name.startswith("python")), None)
    return shutil.which(python) if python else None


def _same_program(one: str, other: str) -> bool:
    # The path as it is called decides which environment a Python belongs to; links of a virtual environment must not
    # be resolved.
    return Path(one).absolute() == Path(other).absolute() or (
        Path(one).absolute().parent == Path(other).absolute().parent and Path(one).resolve() == Path(other).resolve()
    )


def run_child(arguments: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a child with these environment variables to its end; signals reach it.

    Returns its exit code, 128 + n if signal n ended it.
    """
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
