"""The launcher's side: what the processes of a run left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from npuport.sim.recorder.process import PATTERN


def records(directory: Path) -> list[dict[str, Any]]:
    """The records of the processes of a run."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(directory.glob(PATTERN))]
