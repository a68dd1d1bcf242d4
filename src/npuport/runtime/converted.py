"""What conversion in memory makes of a module. Plain tuples, so that they load and are kept without the rules."""

from __future__ import annotations

import types
from typing import Literal, NamedTuple

Effect = Literal["same", "emulated", "no effect", "at run time", "left", "refused"]
"""What a line does on the NPU, beside what it does on CUDA.

``at run time``: its value decides, when the line runs. ``left``: it runs as it is written, and somebody should read it.
"""


class Site(NamedTuple):
    """One line. ``after`` is what runs instead, or stands for it; ``code`` names the rules, "" where none spoke."""

    line: int
    before: str
    after: str
    effect: Effect
    code: str = ""


class Converted(NamedTuple):
    """A module as it runs. ``text`` is None, and ``problem`` says why, where it is left as it is."""

    code: types.CodeType
    text: str | None
    sites: tuple[Site, ...] = ()
    problem: str = ""
