"""These tests compute on the CPU, in this process and in children, where torch_npu has no CANN to load."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from npuport.cli import main


@pytest.fixture(autouse=True)
def no_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")


@pytest.fixture
def npuport(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`npuport` with these arguments, in this process; its exit code."""

    def run(*argv: object) -> int:
        monkeypatch.setattr(sys, "argv", ["npuport", *map(str, argv)])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return run
