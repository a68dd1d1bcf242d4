"""Which line of the program is running: the user's own line, not the one of torch that it leads to."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import threading
from dataclasses import dataclass
from types import FrameType
from typing import Literal

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120
_MACHINERY = ("torch", "torch_npu", "functorch", "torchgen")


@dataclass(frozen=True, slots=True)
class CallSite:
    """A line of Python.

    ``library``: the line of a library (``transformers/trainer.py:2512``) that the user's line led to, where one did.
    Without a line of the user's own, ``path`` and ``line`` are the library's, and ``library`` is None.
    """

    path: str
    line: int
    function: str
    library: str | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def call_site(frame: FrameType | None = None, *, of_main_thread: bool = True) -> CallSite | None:
    """The innermost line outside torch, torch_npu, npuport and Python's own library; of these, the innermost outside
    site-packages, if there is one. Starts at ``frame``, by default the caller.

    A thread of PyTorch that has no Python of its own (a backward pass) stands for the main thread, which waits for it,
    unless ``of_main_thread`` is False. None where no Python runs.
    """
    site = _site_from(frame or sys._getframe(1))
    main = threading.main_thread().ident
    if site is None and of_main_thread and main is not None and main != threading.get_ident():
        waiting = sys._current_frames().get(main)
        site = _site_from(waiting) if waiting is not None else None
    return site


def _site_from(frame: FrameType | None) -> CallSite | None:
    library: FrameType | None = None
    while frame is not None:
        kind = _kind(frame.f_code.co_filename)
        if kind == "user":
            return CallSite(
                frame.f_code.co_filename,
                frame.f_lineno,
                frame.f_code.co_name,
                _short(library) if library is not None else None,
            )
        if kind == "library" and library is None:
            library = frame
        frame = frame.f_back
    if library is None:
        return None
    return CallSite(library.f_code.co_filename, library.f_lineno, library.f_code.co_name)


def _short(frame: FrameType) -> str:
    """``package/module.py:line`` of a frame in site-packages."""
    return f"{_below_site_packages(frame.f_code.co_filename) or frame.f_code.co_filename}:{frame.f_lineno}"


@functools.cache
def _kind(path: str) -> Literal["user", "library", "machinery"]:
    if path.startswith(("<frozen ", "<__array_function__")) or path.startswith(_OWN):
        return "machinery"
    below = _below_site_packages(path)
    if below is not None:
        return "machinery" if below.partition("/")[0] in _MACHINERY else "library"
    if path.startswith(_system_directories()) or path.startswith(_checkouts()):
        return "machinery"
    return "user"


def _below_site_packages(path: str) -> str | None:
    for folder in ("/site-packages/", "/dist-packages/"):
        before, found, after = path.rpartition(folder)
        if found and before:
            return after
    return None


@functools.cache
def _system_directories() -> tuple[str, ...]:
    """Python's own library, and where console scripts such as torchrun lie."""
    paths = sysconfig.get_paths()
    return tuple({os.path.join(paths[name], "") for name in ("stdlib", "platstdlib", "scripts")})  # noqa: PTH118


def _checkouts() -> tuple[str, ...]:
    """torch and torch_npu where they are not in site-packages."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in _MACHINERY)
    return tuple(os.path.dirname(file) + os.sep for file in files if file)  # noqa: PTH120
