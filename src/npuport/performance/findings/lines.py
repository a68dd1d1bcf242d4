"""The line of the user's own code that an event comes from."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import polars as pl

from npuport.performance.tables import Category

_FRAME = re.compile(r"^(?P<path>.+)\((?P<line>\d+)\): (?P<function>.+)$")
# Code of Python, of installed packages and of the profiler. Frames of older traces leave out the part before "torch/".
_NOT_OURS = re.compile(
    r"site-packages/|dist-packages/|/lib/python\d|^<|^(torch|torch_npu|torchvision|multiprocessing|threading|runpy)\b[/.]"
)


def user_frames(stack: str) -> list[str]:
    """``path:line`` of the frames in the user's own code, innermost first."""
    frames = (_FRAME.match(part.strip()) for part in stack.split(";"))
    return [f"{one['path']}:{one['line']}" for one in frames if one is not None and not _NOT_OURS.search(one["path"])]


def short(line: str) -> str:
    """``main.py:485`` of ``/home/me/project/main.py:485``."""
    return PurePosixPath(line).name


def lines_of(around: pl.DataFrame) -> list[str]:
    """The user's frames of an event, from the innermost stack that holds any, else from Python frames around it.

    A frame of its own names the line its function begins at, not the one that calls.
    """
    for stack in around["stack"].drop_nulls().to_list():
        if frames := user_frames(stack):
            return frames
    python = around.filter(pl.col("category") == Category.PYTHON)["name"].to_list()
    return [frame for name in python for frame in user_frames(name)]
