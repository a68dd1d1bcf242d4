"""Profiling in a Python process that `npuport run --profile` starts, from the import of torch on. Imports no torch."""

from __future__ import annotations

from npuport.after_import import after_import


def follow_torch() -> None:
    """Count steps when torch has been imported, and profile those asked for. Twice is the same as once."""
    after_import("torch", _begin)


def _begin() -> None:
    import atexit

    from npuport.performance.collecting.request import requested
    from npuport.performance.collecting.stepping import Stepping

    stepping = Stepping(requested())
    stepping.follow()
    atexit.register(stepping.ended)
