"""Run every function ``check_*`` of a program and say on one line how each ended."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any


def run(names: dict[str, Any]) -> None:
    outcome: dict[str, str | None] = {}
    for name, function in list(names.items()):
        if name.startswith("check_"):
            try:
                function()
                outcome[name] = None
            except Exception:
                outcome[name] = f"rank {os.environ.get('RANK', '0')}: {traceback.format_exc()}"
    sys.stdout.flush()
    os.write(1, ("CHECKS " + json.dumps(outcome) + "\n").encode())  # in one piece: several ranks write to the same pipe


def raises(kind: type[BaseException], text: str, function: Any) -> None:
    try:
        function()
    except kind as error:
        assert text in str(error), f"{text!r} is not in {error}"
        return
    raise AssertionError(f"no {kind.__name__} was raised")
