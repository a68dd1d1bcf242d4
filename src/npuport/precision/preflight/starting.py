"""Writing down the facts of a Python process that `npuport run --preflight` starts. Imports no torch."""

from __future__ import annotations

import os

from npuport.after_import import after_import

FOLDER = "NPUPORT_PREFLIGHT"
"""Variable: the folder that the facts go to."""


def follow_torch() -> None:
    """Begin when torch has been imported. Twice is the same as once."""
    after_import("torch", _begin)


def _begin() -> None:
    import atexit
    from pathlib import Path

    from npuport.precision.preflight.facts_of_run import write_run

    atexit.register(write_run(Path(os.environ[FOLDER])))
