"""The launcher's side: what the processes of a run left becomes files and lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from npuport.report.run_page import run_page
from npuport.sim.recorder.process import PATTERN

KINDS = (".html", ".json")


def records(directory: Path) -> list[dict[str, Any]]:
    """The records of the processes of a run."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(directory.glob(PATTERN))]


def write_report(document: dict[str, Any], path: Path) -> None:
    """As a page or as JSON, as the name says; aside, then renamed.

    Raises:
        OSError: it cannot be written there.
    """
    text = run_page(document) if path.suffix == ".html" else json.dumps(document, indent=1) + "\n"
    aside = path.with_name(f".{path.name}.part")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def check_reports(paths: Sequence[Path]) -> None:
    """Before the run, so that a long one is not lost to a misspelt name.

    Raises:
        ValueError: another ending than .html or .json, or a folder that is not there.
    """
    for path in paths:
        if path.suffix not in KINDS:
            raise ValueError(f"{path}: a report is written as .html or .json; give it one of these endings")
        if not path.absolute().parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.absolute().parent}; make it, or choose another place")
