"""All checks, and running them: ranked by what a step could gain."""

from __future__ import annotations

from npuport.performance.findings import (
    communication,
    compilation,
    data,
    frequency,
    host,
    links,
    memory,
    operators,
    synchronisation,
)
from npuport.performance.findings.base import Check, Context, PerformanceFinding

CHECKS: tuple[Check, ...] = (
    synchronisation.blocking_lines,
    compilation.compiled_operators,
    host.dispatching,
    host.collector,
    host.outside_operators,
    host.launch_blocking,
    communication.waiting,
    communication.not_overlapped,
    links.below_nominal,
    links.small_transfers,
    links.sent_again,
    data.slow_loading,
    host.before_the_first_kernel,
    memory.allocations,
    memory.fragmentation,
    operators.on_control_processors,
    operators.format_conversions,
    operators.rearranging_copies,
    operators.optimizer_parameter_by_parameter,
    frequency.lowered_clock,
)


def find(context: Context) -> list[PerformanceFinding]:
    """The findings of one rank, those that could gain most first."""
    if not context.splits:
        return []
    found = [one for check in CHECKS for one in check(context)]
    return sorted(found, key=lambda one: (-one.gain_ns, -one.cost_ns, one.code, one.line))
