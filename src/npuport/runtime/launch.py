"""Start a command so that CUDA code runs on the NPU in every Python process under it, without an edit."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from npuport import processes
from npuport.errors import UserError
from npuport.report.migration_page import migration_page
from npuport.report.migration_summary import migration_summary
from npuport.report.run_files import check_reports, say, written
from npuport.runtime import children, choice, migration, notes


def environment() -> dict[str, str]:
    """What has a command's Python processes convert CUDA code; nothing where NPUPORT_DEVICE asks for no NPU.

    Raises:
        UserError: NPUPORT_DEVICE has an impossible value.
    """
    return {} if choice.asked() in {"cuda", "cpu"} else children.environment()


def run(command: Sequence[str], reports: Sequence[Path] = (), *, summary: bool = False) -> int:
    """Run a command on this machine; returns its exit code (128 + n if signal n ended it).

    A command that is a Python file gets the running interpreter in front. On a machine with CUDA, and on one without
    torch_npu, it runs as it would alone. ``reports`` (.html, .json) and a summary say in the end what became of CUDA
    code.

    Raises:
        UserError: torch_npu is here without CANN, or another Python has torch_npu but not npuport.
        FileNotFoundError: there is no such command or script.
        ValueError: the command is empty, or a report cannot be written where it is wanted.
    """
    check_reports(reports)
    arguments = processes.with_interpreter(command)
    inside = {**os.environ, **environment(), **choice.without_npu()}
    on_npu = _wants_npu(arguments[0], inside)
    if not reports and not summary:
        return processes.run_child(arguments, inside)
    started, clock = datetime.now(timezone.utc), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="npuport-notes-", ignore_cleanup_errors=True) as folder:
        code = processes.run_child(arguments, {**inside, notes.VARIABLE: folder})
        facts = migration.Run(
            command=list(command),
            npu=on_npu,
            torch=_version("torch"),
            torch_npu=_version("torch-npu"),
            started=started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - clock, 3),
            exit_code=code,
        )
        _report(migration.document(facts, migration.gather(Path(folder))), reports)
    return code


def _report(document: dict[str, Any], reports: Sequence[Path]) -> None:
    say(*migration_summary(document, written(document, reports, migration_page)))


def _wants_npu(program: str, inside: dict[str, str]) -> bool:
    """Whether code is converted.

    Raises:
        UserError: it cannot run then.
    """
    python = processes.other_python(program)
    if python is not None and children.AUTO in inside:
        _check(python, inside)
    return choice.wants_usable_npu() if python is None else children.AUTO in inside


def _check(python: str, inside: dict[str, str]) -> None:
    missing = processes.lacking(python, ("npuport", "torch_npu"), inside)
    if missing == ["npuport"]:
        raise UserError(
            "{python} does not have npuport, which runs in {ours}\n  {python} -m pip install npuport",
            python=python,
            ours=sys.executable,
        )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
