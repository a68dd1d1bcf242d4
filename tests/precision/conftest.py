"""These tests compute on the CPU in this process, where torch_npu has no CANN to load."""

from __future__ import annotations

import contextlib
import os

import pytest

with pytest.MonkeyPatch.context() as patch, contextlib.suppress(ImportError):  # without torch those that need it skip
    patch.setitem(os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    import torch  # noqa: F401
