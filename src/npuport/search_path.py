"""The folder that comes first on the PYTHONPATH of a run. Every process under it imports this: it loads nothing."""

from __future__ import annotations

import os

STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")  # noqa: PTH100, PTH118, PTH120
"""Folder whose sitecustomize every Python runs that has it on its PYTHONPATH."""


def first(folder: str, variable: str) -> str:
    """The value of a search path, such as PYTHONPATH, with ``folder`` in front."""
    rest = [path for path in os.environ.get(variable, "").split(os.pathsep) if path and path != folder]
    return os.pathsep.join([folder, *rest])
