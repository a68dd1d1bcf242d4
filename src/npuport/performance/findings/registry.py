"""All checks, and running them: ranked by what a step could gain."""

from __future__ import annotations

from npuport.performance.findings import communication, compilation, synchronisation
from npuport.performance.findings.base import Check, Context, PerformanceFinding

CHECKS: tuple[Check, ...] = (
    synchronisation.blocking_lines,
    compilation.compiled_operators,
    communication.waiting,
)


def find(context: Context) -> list[PerformanceFinding]:
    """The findings of one rank, those that could gain most first."""
    if not context.splits:
        return []
    found = [one for check in CHECKS for one in check(context)]
    return sorted(found, key=lambda one: (-one.gain_ns, -one.cost_ns, one.code, one.line))
