"""Watching the training in a Python process of `npuport run`, from the import of torch on. Imports no torch."""

from __future__ import annotations

import os

from npuport.after_import import after_import

FACTS, STATE = "NPUPORT_PREFLIGHT", "NPUPORT_MONITOR"
"""Variables: the folders that the facts of the run and the state of its training go to."""


def follow_torch() -> None:
    """Begin when torch has been imported. Twice is the same as once."""
    after_import("torch", _begin)


def _begin() -> None:
    import atexit
    from pathlib import Path

    if os.environ.get(FACTS):
        from npuport.precision.preflight.facts_of_run import writing_run

        facts = writing_run(Path(os.environ[FACTS]))
        facts.__enter__()
        atexit.register(facts.__exit__, None, None, None)
    if os.environ.get(STATE):
        from npuport.precision.training_state.recording import monitoring

        state = monitoring(Path(os.environ[STATE]))
        state.__enter__()
        atexit.register(state.__exit__, None, None, None)
