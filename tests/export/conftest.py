"""These tests compute on the CPU, where torch_npu has no CANN to load."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from npuport.cli import main

with pytest.MonkeyPatch.context() as patch, contextlib.suppress(ImportError):  # without torch those that need it skip
    patch.setitem(os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    import torch  # noqa: F401


@pytest.fixture
def npuport(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`npuport` with these arguments, in this process; its exit code."""

    def run(*argv: object) -> int:
        monkeypatch.setattr(sys, "argv", ["npuport", *map(str, argv)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return run


@pytest.fixture(scope="session")
def networks() -> Path:
    """A file with the networks that the tests export."""
    return Path(__file__).with_name("exported_networks.py")
