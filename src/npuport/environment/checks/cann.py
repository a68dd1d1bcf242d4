"""CANN: toolkit, operator packages, NNAL, and the variables that set_env.sh sets."""

from __future__ import annotations

from collections.abc import Iterator

from npuport.environment.checks.registry import Problem, check
from npuport.environment.snapshot import Cann, Environment
from npuport.findings import say


def paths(env: Environment, name: str) -> list[str]:
    """The folders of a search path variable."""
    return [path.rstrip("/") for path in env.variables.get(name, "").split(":") if path]


def source_line(cann: Cann) -> str:
    """The command that puts a toolkit on the paths."""
    return f"source {cann.path}/set_env.sh"


@check("ND201")
def no_cann(env: Environment) -> Iterator[Problem]:
    if not env.canns and (env.has_npu or env.package("torch-npu")) and not _not_for_npu(env):
        yield Problem(
            say("No CANN toolkit was found in /usr/local/Ascend, ~/Ascend or where ASCEND_HOME_PATH points."),
            say(
                "Install the toolkit and the operator package of your chip; `npuport doctor --plan` names the versions."
            ),
        )


@check("ND202")
def cann_not_sourced(env: Environment) -> Iterator[Problem]:
    if env.canns and not env.variables.get("ASCEND_HOME_PATH"):
        yield Problem(
            say(
                "CANN {version} is at {path}, but ASCEND_HOME_PATH is not set.",
                version=env.canns[0].version,
                path=env.canns[0].path,
            ),
            say("Source its set_env.sh in every shell that trains, for example in ~/.bashrc."),
            (source_line(env.canns[0]),),
        )


def _not_for_npu(env: Environment) -> bool:
    """A laptop with torch_npu, as the simulated NPU wants it, needs no CANN."""
    return not env.has_npu
