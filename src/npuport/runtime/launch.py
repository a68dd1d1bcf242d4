"""Start a command so that CUDA code runs on the NPU in every Python process under it, without an edit."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from npuport import processes
from npuport.errors import UserError
from npuport.runtime import children, choice


def environment() -> dict[str, str]:
    """What has a command's Python processes convert CUDA code; nothing where NPUPORT_DEVICE asks for no NPU.

    Raises:
        UserError: NPUPORT_DEVICE has an impossible value.
    """
    return {} if choice.asked() in {"cuda", "cpu"} else children.environment()


def run(command: Sequence[str]) -> int:
    """Run a command on this machine; returns its exit code (128 + n if signal n ended it).

    A command that is a Python file gets the running interpreter in front. On a machine with CUDA, and on one without
    torch_npu, it runs as it would alone.

    Raises:
        UserError: torch_npu is here without CANN, or another Python has torch_npu but not npuport.
        FileNotFoundError: there is no such command or script.
        ValueError: the command is empty.
    """
    arguments = processes.with_interpreter(command)
    inside = {**os.environ, **environment()}
    python = processes.other_python(arguments[0])
    if python is not None and children.AUTO in inside:
        _check(python, inside)
    elif python is None:
        choice.wants_usable_npu()  # for its errors
    return processes.run_child(arguments, inside)


def _check(python: str, inside: dict[str, str]) -> None:
    missing = processes.lacking(python, ("npuport", "torch_npu"), inside)
    if missing == ["npuport"]:
        raise UserError(
            "{python} does not have npuport, which runs in {ours}\n  {python} -m pip install npuport",
            python=python,
            ours=sys.executable,
        )
