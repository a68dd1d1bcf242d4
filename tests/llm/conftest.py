"""These tests compute on the CPU, in this process and in children, where torch_npu has no CANN to load."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
