"""Lines of the user's program, as a report shows them."""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npuport.sim.call_site import CallSite

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
    """``site``: path, line, function, and the library's line it led to (or None) with the source of that."""
    path, line, function, library, of_library = site
    return {
        "path": _relative(path, directory),
        "line": line,
        "function": function,
        "library": library,
        "source": _source(str(Path(directory) / path), line),
        "library_source": of_library,
    }


def library_source(site: CallSite) -> str | None:
    """The source of the library's line, read in the process that runs it, which knows where libraries lie."""
    if site.library is None:
        return None
    path, _, line = site.library.rpartition(":")
    files = (Path(folder) / path for folder in sys.path)
    return next((_source(str(file), int(line)) for file in files if file.is_file()), "")


@functools.cache
def _source(path: str, line: int) -> str:
    return linecache.getline(path, line).strip()[:_SOURCE_LENGTH]


def key(where: Place) -> tuple[Any, ...]:
    """What tells places apart, and sorts them."""
    return ("", 0, "") if where is None else (where["path"], where["line"], where["library"] or "")


def _relative(path: str, directory: str) -> str:
    try:
        return str(Path(path).relative_to(directory))
    except ValueError:
        return path
