"""`npuport doctor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npuport.cli.analyze import FailOn
from npuport.cli.shared import CLEAN, FINDINGS, talk
from npuport.errors import UserError

if TYPE_CHECKING:
    from npuport.environment.plan.plan import Plan
    from npuport.environment.snapshot import Environment
    from npuport.findings import Diagnosis


def doctor(
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="WISH",
            help="Say which versions go together, for 'torch 2.7, Ascend910B3, Python 3.11, aarch64, openEuler 22.03', "
            "for 'here' and a torch, or say what in a requirements file clashes.",
        ),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", metavar="A.json B.json", help="Say what two machines differ in, from their --json."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown for a bug report, without names of people and machines.")
    ] = False,
    with_names: Annotated[
        bool, typer.Option("--with-names", help="Leave names, paths and addresses in the Markdown.")
    ] = False,
    fix_to: Annotated[
        Path | None,
        typer.Option("--fix-script", metavar="FILE", help="Also write the commands that repair the machine."),
    ] = None,
    install_to: Annotated[
        Path | None,
        typer.Option("--install-script", metavar="FILE", help="With --plan: also write a script that installs it."),
    ] = None,
    python: Annotated[
        Path | None,
        typer.Option(
            "--python", metavar="FILE", help="The Python that trains, if it is not the one that runs npuport."
        ),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="End with 1 for anything at least this severe.")
    ] = FailOn.ERROR,
    time_limit: Annotated[
        float, typer.Option("--timeout", metavar="S", min=0.1, help="Seconds that npu-smi may take to answer.")
    ] = 1.5,
) -> None:
    """Say what on this machine keeps training from running on an NPU, why, and what repairs it. Changes nothing.

    Exit codes: 0 nothing as severe as --fail-on, or equal machines; 1 something is; 2 misuse, or no such versions.
    """
    if plan is not None and compare is not None:
        raise UserError("--plan and --compare exclude each other. Give one of them.")
    if install_to is not None and plan is None:
        raise UserError("--install-script writes a plan. Add --plan, for example: --plan 'torch 2.7, Ascend910B3'")
    if compare is not None:
        _compare(*compare, as_json=as_json)
    elif plan is not None and Path(plan).is_file():
        _requirements(Path(plan), as_json=as_json, fail_on=fail_on)
    elif plan is not None:
        _plan(plan, install_to, as_json=as_json, seen=partial(_environment, time_limit, python))
    else:
        _machine(
            _environment(time_limit, python),
            as_json=as_json,
            markdown=markdown,
            with_names=with_names,
            fix_to=fix_to,
            fail_on=fail_on,
        )


def _machine(
    environment: Environment, *, as_json: bool, markdown: bool, with_names: bool, fix_to: Path | None, fail_on: FailOn
) -> None:
    from dataclasses import asdict

    from npuport.environment.checks.registry import diagnose
    from npuport.environment.headline import headline

    found = diagnose(environment)
    if as_json:
        from npuport.report.doctor_json import doctor_json

        print(doctor_json(asdict(environment), found), end="")
    elif markdown:
        print(_markdown(environment, found, with_names), end="")
    else:
        from npuport.report.doctor_text import print_diagnoses

        print_diagnoses(headline(environment), found)
    if fix_to is not None:
        from npuport.environment.fix_script import fix_script

        _write(fix_to, fix_script(found))
    raise SystemExit(_exit_code(found, fail_on))


def _markdown(environment: Environment, found: Sequence[Diagnosis], with_names: bool) -> str:
    from npuport.environment.headline import headline
    from npuport.environment.privacy import scrubbed
    from npuport.report.doctor_markdown import doctor_markdown

    packages = {one.name: one.version for one in reversed(environment.packages)}
    text = doctor_markdown(
        headline(environment), sorted(packages.items()), sorted(environment.variables.items()), found
    )
    return text if with_names else scrubbed(text, environment.user)


def _plan(wish: str, install_to: Path | None, *, as_json: bool, seen: Callable[[], Environment]) -> None:
    from dataclasses import asdict, replace

    from npuport.environment.plan.plan import make_plan
    from npuport.environment.plan.request import request_from_machine, request_from_text
    from npuport.environment.plan.script import install_script

    words = wish.split()
    if "here" in words or "here," in words:
        machine = request_from_machine(seen())
        rest = " ".join(word for word in words if word not in ("here", "here,"))
        asked = request_from_text(rest) if rest else machine
        request = replace(machine, **{name: value for name, value in asdict(asked).items() if value})
    else:
        request = request_from_text(wish)
    plan = make_plan(request)
    script = install_script(plan) if install_to is not None else ""
    if as_json:
        import json

        print(json.dumps({"schema": "npuport-plan/1", **_plan_json(plan)}, indent=2))
    else:
        from npuport.environment.plan.plan import plan_rows
        from npuport.report.doctor_plan import print_table

        print_table(plan_rows(plan), plan.notes)
    if install_to is not None:
        _write(install_to, script)


def _plan_json(plan: Plan) -> dict[str, object]:
    release = plan.release
    return {
        "torch": release.torch,
        "torch_npu": release.torch_npu,
        "release": release.release,
        "cann": release.cann,
        "driver": release.driver,
        "python": plan.python,
        "numpy": plan.numpy,
        "torchvision": plan.torchvision,
        "packages": list(plan.packages),
        "notes": [str(note) for note in plan.notes],
        "basis": {"source": release.basis.source, "version": release.basis.version,
                  "certainty": release.basis.certainty},
    }  # fmt: skip


def _requirements(path: Path, *, as_json: bool, fail_on: FailOn) -> None:
    from npuport.environment.plan.requirements import clashes, read_requirements

    found = clashes(read_requirements(path))
    if as_json:
        import json

        from npuport.report.doctor_json import diagnosis_json

        print(
            json.dumps({"schema": "npuport-clashes/1", "diagnoses": [diagnosis_json(one) for one in found]}, indent=2)
        )
    else:
        from npuport.report.doctor_text import print_diagnoses

        print_diagnoses([], found)
    raise SystemExit(_exit_code(found, fail_on))


def _compare(first: Path, second: Path, *, as_json: bool) -> None:
    from dataclasses import asdict, astuple

    from npuport.environment.compare import differences, load

    found = differences(load(first), load(second))
    if as_json:
        import json

        print(json.dumps({"schema": "npuport-comparison/1", "differences": [asdict(one) for one in found]}, indent=2))
    else:
        from npuport.report.doctor_plan import print_differences

        names = (first.name, second.name) if first.name != second.name else (str(first), str(second))
        print_differences([astuple(one) for one in found], names)
    raise SystemExit(FINDINGS if found else CLEAN)


def _environment(time_limit: float, python: Path | None) -> Environment:
    from npuport.environment import machine
    from npuport.environment.probe import probe

    return probe(machine.this_machine(time_limit, python))


def _exit_code(found: Sequence[Diagnosis], fail_on: FailOn) -> int:
    if fail_on is FailOn.NEVER:
        return CLEAN
    from npuport.findings import Severity

    limit = Severity(fail_on.value).rank
    return FINDINGS if any(one.severity.rank <= limit for one in found) else CLEAN


def _write(path: Path, text: str) -> None:
    """Written aside and then renamed, so that nobody sources half a script."""
    from npuport.report.language import translate

    aside = path.with_name(f"{path.name}.part")
    try:
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise UserError("{path} could not be written: {problem}", path=path, problem=error) from error
    talk(translate("{path} is written; read it before you run it", path=path))
