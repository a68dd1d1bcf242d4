"""Commands that start Python where the variables of a run do not come: said before the run, not found out after it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile
from pathlib import Path

from npuport.report.language import translate

_OTHER_PLACES = {"docker", "kubectl", "nerdctl", "pdsh", "podman", "ssh", "sudo"}
_QUEUES = {"bsub", "qsub", "sbatch"}
_COMPILING = {"cProfile", "coverage", "pdb", "profile", "trace"}  # modules that compile the script by themselves
_HOSTS = {"-H", "--host", "-host", "--hostfile", "-hostfile", "--machinefile", "-machinefile"}


def unreached(command: Sequence[str]) -> str | None:
    """Why Python processes of ``command`` would not be converted, and what to do; None where nothing is known."""
    if not command:
        return None
    program, arguments = Path(command[0]).name, command[1:]
    if program in _OTHER_PLACES:
        return translate(
            "{program} starts programs without this run's variables, so their code is not converted: "
            "put npuport inside, {program} … npuport run …",
            program=program,
        )
    if program in _QUEUES:
        return translate(
            "{program} returns before its job starts: put npuport run into the job's script", program=program
        )
    if program in {"mpirun", "mpiexec"} and _HOSTS & set(arguments) and not _hands_on(arguments):
        return translate(
            "Open MPI gives PYTHONPATH to other hosts only when told so: add -x PYTHONPATH, "
            "or their processes are not converted"
        )
    if program == "srun" and any(one.startswith("--export=") and "ALL" not in one for one in arguments):
        return translate("srun --export without ALL takes this run's variables away: add ALL to it")
    if program.startswith("python") and (flag := _ignores_variables(arguments)):
        return translate(
            "python {flag} ignores PYTHONPATH, through which code is converted: leave {flag} out", flag=flag
        )
    tool = program if program == "coverage" else _module(arguments) if program.startswith("python") else ""
    if tool in _COMPILING:
        return translate(
            "{tool} compiles the script by itself, so the script stays as it is, and what it imports is converted: "
            "call it inside the script (breakpoint(), cProfile.Profile()), or keep the CUDA code in a module",
            tool=tool,
        )
    return None


def _module(arguments: Sequence[str]) -> str:
    """What python -m runs; "" for a script."""
    options = list(takewhile(lambda argument: argument.startswith("-"), arguments))
    return arguments[len(options)] if options[-1:] == ["-m"] and len(arguments) > len(options) else ""


def _hands_on(arguments: Sequence[str]) -> bool:
    given = [value for flag, value in pairwise(arguments) if flag == "-x"]
    return any(value.partition("=")[0] == "PYTHONPATH" for value in given)


def _ignores_variables(arguments: Sequence[str]) -> str | None:
    """-E, -I and -S, alone or among other letters, before the script."""
    for argument in arguments:
        if not argument.startswith("-") or argument in ("-c", "-m", "-"):
            return None
        if not argument.startswith("--") and argument[1:2] not in ("X", "W") and set("EIS") & set(argument[1:]):
            return argument
    return None
