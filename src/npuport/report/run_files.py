"""Reports of runs on disk: as a page or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from npuport.report.language import translate

KINDS = (".html", ".json")


def write_report(document: Mapping[str, Any], path: Path, page: Callable[[Mapping[str, Any]], str]) -> None:
    """As a page or as JSON, as the name says; aside, then renamed.

    Raises:
        OSError: it cannot be written there.
    """
    text = page(document) if path.suffix == ".html" else json.dumps(document, indent=1) + "\n"
    aside = path.with_name(f".{path.name}.part")
    try:
        aside.write_text(text, encoding="utf-8", errors="backslashreplace")
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def written(document: Mapping[str, Any], paths: Sequence[Path], page: Callable[[Mapping[str, Any]], str]) -> list[str]:
    """Write a report wherever it is wanted, and say where it could not be; returns the places where it lies now."""
    return [str(path) for path in paths if _written(document, path, page)]


def _written(document: Mapping[str, Any], path: Path, page: Callable[[Mapping[str, Any]], str]) -> bool:
    try:
        write_report(document, path, page)
    except OSError as error:
        say(translate("{path} was not written: {reason}", path=path, reason=error.strerror or error))
        return False
    return True


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


def say(first: str, *rest: str) -> None:
    """Lines of npuport's own, on stderr."""
    print("\n         ".join([f"npuport: {first}", *rest]), file=sys.stderr, flush=True)
