"""Recording in a Python process that `npuport run --dump` starts, from the import of torch on. Imports no torch."""

from __future__ import annotations

import os

from npuport.after_import import after_import

FOLDER, STEPS = "NPUPORT_DUMP", "NPUPORT_DUMP_STEPS"
"""Variables: where the steps go, and which, as "first:last" with the last one left out."""


def follow_torch() -> None:
    """Begin to record when torch has been imported. Twice is the same as once."""
    after_import("torch", _begin)


def _begin() -> None:
    import atexit
    from pathlib import Path

    from npuport.precision.operators.recording import record

    first, _, last = os.environ.get(STEPS, "0:1").partition(":")
    recording = record(Path(os.environ[FOLDER]), range(int(first), int(last)))
    recording.__enter__()
    atexit.register(recording.__exit__, None, None, None)
