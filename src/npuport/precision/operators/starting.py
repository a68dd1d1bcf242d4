"""Recording in a Python process that `npuport run --dump` starts, from the import of torch on. Imports no torch."""

from __future__ import annotations

import os

from npuport.after_import import after_import

OPTIONS = "NPUPORT_DUMP"
"""Variable: what is recorded, as ``Options.dumped`` gives it."""


def follow_torch() -> None:
    """Begin to record when torch has been imported. Twice is the same as once."""
    after_import("torch", _begin)


def _begin() -> None:
    import atexit

    from npuport.precision.operators.options import Options
    from npuport.precision.operators.session import recording

    session = recording(Options.loaded(os.environ[OPTIONS]))
    session.__enter__()
    atexit.register(session.__exit__, None, None, None)
