"""Why a simulation cannot start."""

from __future__ import annotations


class SimulationUnavailable(RuntimeError):
    """Something the simulated NPU needs is missing. ``next_step`` is what to do about it, ready to be shown."""

    def __init__(self, problem: str, next_step: str) -> None:
        self.problem = problem
        self.next_step = next_step
        super().__init__(f"{problem}\n  {next_step}")
