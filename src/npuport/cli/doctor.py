"""`npuport doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from npuport.cli.analyze import FailOn
from npuport.cli.shared import CLEAN, FINDINGS


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="End with 1 for anything at least this severe.")
    ] = FailOn.ERROR,
    time_limit: Annotated[
        float, typer.Option("--timeout", metavar="S", min=0.1, help="Seconds that npu-smi may take to answer.")
    ] = 1.5,
) -> None:
    """Say what on this machine keeps training from running on an NPU, why, and what repairs it. Changes nothing.

    Exit codes: 0 nothing as severe as --fail-on; 1 something is; 2 misuse.
    """
    from dataclasses import asdict

    from npuport.environment.checks.registry import diagnose
    from npuport.environment.headline import headline
    from npuport.environment.machine import this_machine
    from npuport.environment.probe import probe

    environment = probe(this_machine(time_limit))
    found = diagnose(environment)
    if as_json:
        from npuport.report.doctor_json import doctor_json

        print(doctor_json(asdict(environment), found), end="")
    else:
        from npuport.report.doctor_text import print_diagnoses

        print_diagnoses(headline(environment), found)
    if fail_on is FailOn.NEVER:
        raise SystemExit(CLEAN)
    from npuport.findings import Severity

    limit = Severity(fail_on.value).rank
    raise SystemExit(FINDINGS if any(one.severity.rank <= limit for one in found) else CLEAN)
