"""Start a command so that its CUDA code runs on the NPU, without an edit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from npuport.errors import UserError


def run(command: Sequence[str]) -> int:
    """Run ``[python] script.py arguments`` converted in memory; returns the exit code of the script.

    Raises:
        UserError: when the command is no Python script.
    """
    arguments = list(command)
    python = sys.executable
    if arguments and Path(arguments[0]).name.startswith("python"):
        python = arguments.pop(0)
    if not arguments or not arguments[0].endswith(".py"):
        raise UserError(
            "{command} is no Python script; write `npuport run train.py …`, or convert the tree first",
            command=" ".join(command),
        )
    return subprocess.run([python, "-m", "npuport.auto", *arguments], check=False).returncode
