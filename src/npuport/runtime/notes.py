"""What the processes of a run tell whoever started it and wants a report.

A process that finds the variable ``NPUPORT_NOTES`` adds lines of JSON to a file of its own in that folder. Imported
by every process as it starts, so it loads nothing by itself.
"""

from __future__ import annotations

import os

VARIABLE = "NPUPORT_NOTES"


def wanted() -> bool:
    """Whether somebody reads what is noted."""
    return bool(os.environ.get(VARIABLE))


def note(kind: str, **what: object) -> None:
    """Add one note of this process; without effect where nobody wants it."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    import json

    line = json.dumps({"kind": kind, **what}) + "\n"
    try:
        file = os.open(f"{folder}/{os.getpid()}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        return  # a process on another machine, where the folder is not
    with os.fdopen(file, "a", encoding="utf-8") as output:
        output.write(line)
