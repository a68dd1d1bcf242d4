"""shellcheck over scripts that npuport writes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest


def shellcheck(scripts: Mapping[str, str], folder: Path) -> str:
    """What shellcheck says of all of them; empty where it says nothing."""
    program = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("shellcheck is not installed")
    folder.mkdir(exist_ok=True)
    for name, text in scripts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return subprocess.run([program, *sorted(scripts)], cwd=folder, capture_output=True, text=True, check=False).stdout
