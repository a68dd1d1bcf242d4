"""Processes that this one starts, by whatever means: Python itself reads PYTHONPATH in each of them."""

from __future__ import annotations

import os

from npuport.search_path import STARTUP, first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuport.runtime.patches import Patches

AUTO = "NPUPORT_AUTO"
"""Variable that says, with 1, that the startup folder is there for the conversion of CUDA code."""


def environment() -> dict[str, str]:
    """Variables that have every Python process under them convert CUDA code; merge them over ``os.environ``."""
    return {AUTO: "1", "PYTHONPATH": first(STARTUP, "PYTHONPATH")}


def follow(patches: Patches) -> None:
    """Have the children of this process convert too."""
    for name, value in environment().items():
        _set(name, value, patches)


def _set(name: str, value: str, patches: Patches) -> None:
    before = os.environ.get(name)
    os.environ[name] = value

    def back() -> None:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before

    patches.do(back)
