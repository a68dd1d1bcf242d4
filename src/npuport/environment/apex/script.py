"""The plan as a script of bash."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from npuport.environment.apex.plan import BuildPlan


def script_of(plan: BuildPlan) -> str:
    """The script, with the reason of each step above it. Its argument is the folder to build in."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: BuildPlan) -> Iterator[str]:
    yield "#!/usr/bin/env bash"
    yield f"# Builds Apex for Ascend for torch {plan.torch or '(not installed yet)'}, as {plan.wheel}."
    for sentence in (*plan.blockers, *plan.notes):
        yield f"# {sentence}."
    yield "set -euo pipefail"
    yield f"python={shlex.quote(plan.python)}"
    yield 'work=${1:-"$PWD/apex-build"}'
    for number, step in enumerate(plan.steps, 1):
        yield ""
        yield from (f"# {line}" for line in f"{number}. {step.reason}".splitlines())
        yield from step.commands
