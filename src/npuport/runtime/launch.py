"""Start a command so that its CUDA code runs on the NPU, without an edit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from npuport.errors import UserError


def converting(command: Sequence[str]) -> list[str] | None:
    """``[python] script.py arguments`` as the command that runs the script converted; None for any other command."""
    arguments = list(command)
    python = arguments.pop(0) if arguments and Path(arguments[0]).name.startswith("python") else sys.executable
    if not arguments or not arguments[0].endswith(".py"):
        return None
    return [python, "-m", "npuport.auto", *arguments]


def run(command: Sequence[str]) -> int:
    """Run a Python script converted in memory; returns its exit code.

    Raises:
        UserError: when the command is no Python script, or there is no such interpreter.
    """
    arguments = converting(command)
    if arguments is None:
        raise UserError(
            "{command} is no Python script; write `npuport run train.py …`, or convert the tree first",
            command=" ".join(command),
        )
    try:
        return subprocess.run(arguments, check=False).returncode
    except FileNotFoundError:
        raise UserError("there is no {python} on the search path", python=arguments[0]) from None
