"""Reading what `npuport run --preflight` wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from npuport.errors import UserError

FORMAT = "npuport-run/1"

Facts = dict[str, Any]
"""The document of one process of a run."""

_FILE = re.compile(r"run(?:\.rank\d+)?(?:\.\d+)?\.json")


def read_facts(path: Path) -> dict[int, Facts]:
    """The facts of a run by rank: those of one file, or of all in a folder (of the first process of each rank).

    Raises:
        UserError: there are none, or a file is not of this format.
    """
    files = [path]
    if path.is_dir():
        found_here = (one for one in path.iterdir() if _FILE.fullmatch(one.name))
        files = sorted(found_here, key=lambda one: (len(one.name), one.name))  # run.json before run.2.json
        if not files:
            raise UserError(
                "{path} holds no facts of a run (run.json). They are written by npuport run --preflight {path} -- "
                "COMMAND",
                path=path,
            )
    found: dict[int, Facts] = {}
    for file in files:
        facts = _read(file)
        found.setdefault(int(facts["rank"]), facts)
    return dict(sorted(found.items()))


def _read(path: Path) -> Facts:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=path, reason=error.strerror or error) from error
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("npuport") != FORMAT:
        raise UserError("{path} holds no facts of a run, or not of this version of npuport.", path=path)
    return document
