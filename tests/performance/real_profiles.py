"""Real profiles that do not come with the project: where they are, and a mark that skips a test without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PROFILES = Path(
    os.environ.get("NPUPORT_PROFILES") or Path(__file__).resolve().parents[3] / "shared" / "data" / "profiles"
)
ALEXNET = PROFILES / "npu_alexnet_ddp"
needs_profiles = pytest.mark.skipif(not PROFILES.is_dir(), reason="NPUPORT_PROFILES names no folder of profiles")
