"""What code is converted for when it runs at once: the torch that is installed, and the chip of this machine."""

from __future__ import annotations

import ctypes
import importlib.metadata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npuport.rules.settings import Settings


@cache
def settings() -> Settings:
    """The settings for a conversion in memory. Only what changes code is looked for, and what fails."""
    from npuport.rules.settings import Settings

    torch, chip = machine()
    usual = Settings()
    return Settings(
        torch_version=torch or usual.torch_version, chip=chip or usual.chip, keep_lines=True, edits_only=True
    )


@cache
def machine() -> tuple[str | None, str | None]:
    """The version of torch and the chip; None where there is none."""
    return _torch_version(), _chip()


def _torch_version() -> str | None:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def _chip() -> str | None:
    """The chip's name as CANN gives it, which needs no device; torch_npu would start one to say it."""
    try:
        ask = ctypes.CDLL("libascendcl.so").aclrtGetSocName
    except (OSError, AttributeError):
        return None
    ask.restype = ctypes.c_char_p
    name = ask()
    return name.decode() if name else None
