"""What `npuport precision substitute` says."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from npuport.cli.shared import CLEAN, FINDINGS, print_json
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.precision.bisect.substitution import ModuleError

_TIMES, _ROUNDINGS = 8.0, 16.0  # further off than usual, and than rounding explains
_SHOWN = 10


def substitute(reference: Path, command: Sequence[str], step: int, as_json: bool) -> int:
    """Run a training in which each module gets the reference's input; the exit code."""
    from npuport.precision.bisect.substitution import PLAN, Substitution, read_errors
    from npuport.precision.dumps import recorded_steps
    from npuport.search_path import STARTUP, first

    if not any(number == step for number, _ in recorded_steps(reference)):
        raise UserError("{path} has no step {step}: give one that it has with --step.", path=reference, step=step)
    if Path(command[0]).name != "npuport" and list(command[1:3]) != ["-m", "npuport"]:
        command = [sys.executable, "-m", "npuport", "run", "--", *command]
    with tempfile.TemporaryDirectory(prefix="npuport-substitute-") as folder:
        plan, found = Path(folder) / "plan.json", Path(folder) / "found"
        Substitution(str(reference.resolve()), step, str(found)).write(plan)
        inside = {**os.environ, PLAN: str(plan), "PYTHONPATH": first(STARTUP, "PYTHONPATH")}
        code = subprocess.run(command, env=inside, check=False, stdout=2).returncode
        errors = read_errors(found)
    if not errors and code:
        raise UserError(
            "The run ended with exit code {code} before a module was called as in the reference: see what it says "
            "above.",
            code=code,
        )
    if not errors:
        raise UserError("No module of the run was called as in the reference (exit code {code}).", code=code)
    far = {rank: _far(many) for rank, many in errors.items()}
    if as_json:
        print_json({"version": 1, "step": step, "ranks": [
            {"rank": rank, "modules": [asdict(one) for one in many],
             "far": [{"path": one.path, "where": where} for one, where in far[rank]]}
            for rank, many in errors.items()
        ]})  # fmt: skip
    else:
        print("\n".join(line for rank, many in errors.items() for line in _as_text(step, rank, many, far[rank])))
    return FINDINGS if any(far.values()) else CLEAN


def _far(errors: Sequence[ModuleError]) -> list[tuple[ModuleError, str]]:
    """The modules that are off by themselves ("own"), and the inputs that are off before any module is ("before"): that
    is the code between modules. In order."""
    usual = {"own": median([one.own for one in errors]), "before": median([one.before for one in errors])}
    found: list[tuple[ModuleError, str]] = []
    for one in errors:
        for where in ("before", "own"):
            limit = max(_TIMES * usual[where], _ROUNDINGS * one.rounding)
            is_known = where == "before" and any(earlier == "own" for _, earlier in found)
            if not getattr(one, where) <= limit and not is_known:
                found.append((one, where))
    return found


def _as_text(
    step: int, rank: int, errors: Sequence[ModuleError], far: Sequence[tuple[ModuleError, str]]
) -> Iterator[str]:
    from npuport.report.language import counted, translate

    name = translate("step {step}, rank {rank}", step=step, rank=rank)
    usual = median([one.own for one in errors])
    calls = counted(len(errors), "module call")
    given = translate("each with the input of the reference; usually {error} off", error=f"{usual:.1e}")
    yield f"{name}: {calls}, {given}"
    for number, (one, where) in enumerate(far[:_SHOWN], 1):
        if where == "own":
            text = translate("its own result is {error} off", error=f"{one.own:.1e}")
        else:
            text = translate(
                "its input was {error} off before it was replaced: the code before it", error=f"{one.before:.1e}"
            )
        yield f"  {number}  {one.path} ({one.class_name}): {text}"
    if not far:
        yield "  " + translate("No module is further off than the others.")
