"""Lines of the user's program, as a report shows them."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Place = dict[str, Any] | None
_SOURCE_LENGTH = 160


@dataclass(frozen=True)
class Places:
    """The call sites of one process by their numbers, with paths relative to the directory that it ran in."""

    sites: Sequence[Sequence[Any]]
    directory: str

    def __getitem__(self, number: int) -> Place:
        """The place of a site; None for a number below 0 (no Python was running)."""
        return place(self.sites[number], self.directory) if number >= 0 else None


def place(site: Sequence[Any], directory: str) -> dict[str, Any]:
    """``site``: path, line, function, and the library's line it led to or None."""
    path, line, function, library = site
    return {
        "path": _relative(path, directory),
        "line": line,
        "function": function,
        "library": library,
        "source": linecache.getline(str(Path(directory) / path), line).strip()[:_SOURCE_LENGTH],
    }


def key(where: Place) -> tuple[Any, ...]:
    """What tells places apart, and sorts them."""
    return ("", 0, "") if where is None else (where["path"], where["line"], where["library"] or "")


def name(where: Mapping[str, Any] | None) -> str:
    """``train.py:41``, or the library's line where that is what differs."""
    return "" if where is None else f"{where['path']}:{where['line']}"


def _relative(path: str, directory: str) -> str:
    try:
        return str(Path(path).relative_to(directory))
    except ValueError:
        return path
