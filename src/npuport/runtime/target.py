"""What code is converted for when it runs at once: the torch that is installed, and the chip of this machine."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

from npuport.runtime.installed import torch_says

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
    return torch_says("__version__"), _chip()


def _chip() -> str | None:
    """The chip's name as CANN gives it, which needs no device; torch_npu would start one to say it."""
    try:
        ask = ctypes.CDLL("libascendcl.so").aclrtGetSocName
    except (OSError, AttributeError):
        return None
    ask.restype = ctypes.c_char_p
    name = ask()
    return name.decode() if name else None
