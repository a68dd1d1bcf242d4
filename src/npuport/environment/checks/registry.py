"""How a check is written, and running all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from npuport.environment.snapshot import Environment
from npuport.facts import environment_check
from npuport.findings import Diagnosis, Sentence, say

_MODULES = ("building", "cann", "communication", "hardware", "installation", "packages", "variables")


@dataclass(frozen=True)
class Problem:
    """What one check found: what was seen, what repairs it, and the commands that do so, if any do."""

    seen: Sentence
    fix: Sentence
    commands: tuple[str, ...] = ()


CheckFunction = Callable[[Environment], Iterator[Problem]]
_CHECKS: dict[str, CheckFunction] = {}


def check(code: str) -> Callable[[CheckFunction], CheckFunction]:
    """Register a check under its code in facts/data/environment_checks.csv."""

    def register(function: CheckFunction) -> CheckFunction:
        if code in _CHECKS:
            raise ValueError(f"{code} is taken by {_CHECKS[code].__name__}")
        _CHECKS[code] = function
        return function

    return register


def all_checks() -> dict[str, CheckFunction]:
    """Every check by code."""
    for name in _MODULES:
        import_module(f"npuport.environment.checks.{name}")
    return dict(sorted(_CHECKS.items()))


def diagnose(environment: Environment) -> list[Diagnosis]:
    """What is wrong, worst first, then by code."""
    found = [diagnosis(code, problem) for code, function in all_checks().items() for problem in function(environment)]
    return sorted(found, key=lambda one: (one.severity.rank, one.code))


def diagnosis(code: str, problem: Problem) -> Diagnosis:
    """What a check says of its problem."""
    entry = environment_check(code)
    return Diagnosis(
        code=code,
        name=entry.name,
        severity=entry.severity,
        seen=problem.seen,
        why=say(entry.why),
        fix=problem.fix,
        commands=problem.commands,
        basis=entry.basis,
    )
