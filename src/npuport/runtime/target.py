"""What code is converted for when it runs at once: the torch that is installed, and the chip of this machine."""

from __future__ import annotations

import ctypes
import importlib.metadata
from functools import cache

from npuport.facts import DEFAULT_CHIP
from npuport.rules.settings import Settings


@cache
def settings() -> Settings:
    """The settings for a conversion in memory."""
    return Settings(torch_version=_torch_version(), chip=_chip(), keep_lines=True)


def _torch_version() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return Settings().torch_version


def _chip() -> str:
    """The chip's name as CANN gives it, which needs no device; torch_npu would start one to say it."""
    try:
        ask = ctypes.CDLL("libascendcl.so").aclrtGetSocName
    except (OSError, AttributeError):
        return DEFAULT_CHIP
    ask.restype = ctypes.c_char_p
    name = ask()
    return name.decode() if name else DEFAULT_CHIP
