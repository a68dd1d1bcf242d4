"""`npuport apex`: building Apex for Ascend."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from npuport.cli.shared import CLEAN, FINDINGS, guard, talk, write_aside

app = typer.Typer(help="Build Apex for Ascend.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def apex() -> None:
    """Build Apex for Ascend, for code that must keep apex. New code needs none: it uses torch.amp."""


@app.command("build-plan", short_help="Write a build script for this machine, or check a finished wheel.")
@guard()
def build_plan(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the script here.", show_default=False)
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="WHEEL", help="Say what is wrong with a finished wheel.", show_default=False),
    ] = None,
) -> None:
    """Write the script that builds Apex for Ascend for this Python, its torch and this machine, with the reasons.

    Nothing is built or changed. --check looks at a wheel's name, tags and contents.

    Exit codes: 0 done; 1 something keeps the build, or the wheel, from working; 2 misuse or unreadable input.
    """
    from npuport.environment.machine import this_machine
    from npuport.report.language import translate

    machine = this_machine(time_limit=1.0)
    if check is not None:
        from npuport.environment.apex.wheel import wheel_faults

        faults = wheel_faults(check, machine.process)
        for fault in faults:
            print(f"{check}: {translate(fault.template, **fault.values)}")
        if not faults:
            print(translate("{path}: Apex for Ascend, and it fits this Python and this machine", path=check))
        raise SystemExit(FINDINGS if faults else CLEAN)
    from npuport.environment.apex.plan import build_plan as plan_for
    from npuport.environment.apex.script import script_of

    plan = plan_for(machine)
    text = script_of(plan)
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_aside(output, text.encode())
        output.chmod(0o755)
    for sentence in (*plan.blockers, *plan.notes):
        talk(translate(sentence.template, **sentence.values))
    raise SystemExit(FINDINGS if plan.blockers else CLEAN)
