"""The report of a migration: what the processes of a run noted, as one document.

A run on the simulated NPU holds it beside what the run did (report/schemas/npuport-run-1.json); a run on a device is
a document of its own (report/schemas/npuport-migration-1.json).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from npuport import __version__

SCHEMA = "npuport-migration/1"

Note = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """What the launcher knows of a run on a device. ``npu``: whether code was converted for one."""

    command: Sequence[str]
    npu: bool
    torch: str | None
    torch_npu: str | None
    started: str  # UTC, ISO 8601
    seconds: float
    exit_code: int


def document(run: Run, migration: Mapping[str, Any]) -> dict[str, Any]:
    """The report of a run on a device."""
    return {"schema": SCHEMA, "npuport": __version__, "run": asdict(run), "migration": migration}


def gather(folder: Path) -> dict[str, Any]:
    """What became of the CUDA code of a run; ``folder`` is where its processes left their notes."""
    notes = {int(file.stem): list(_notes(file)) for file in sorted(folder.glob("*.jsonl"))}
    return {
        "processes": [_process(pid, found) for pid, found in sorted(notes.items())],
        "modules": _modules(notes),
        "sites": _sites(notes),
        "libraries": _libraries(notes),
        "stand_ins": sorted({note["name"] for note in _of("stand-in", notes)}),
        "variables": list(dict.fromkeys(note["text"] for note in _of("variable", notes))),
    }


def _notes(file: Path) -> Iterator[Note]:
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    # A line without its end is the last one of a process that was killed.
    return (json.loads(line) for line in lines if line.endswith("\n"))


def _of(kind: str, notes: Mapping[int, Sequence[Note]]) -> Iterator[Note]:
    return (note for found in notes.values() for note in found if note["kind"] == kind)


def _process(pid: int, notes: Sequence[Note]) -> dict[str, Any]:
    command: Sequence[str] = next((note["command"] for note in notes if note["kind"] == "process"), [])
    return {"pid": pid, "command": command, "modules": len(_module_notes(notes))}


def _module_notes(notes: Iterable[Note]) -> dict[str, Note]:
    """Each module once: one that a process loads again may have changed meanwhile."""
    return {note["file"]: note for note in notes if note["kind"] == "module"}


def _modules(notes: Mapping[int, Sequence[Note]]) -> list[dict[str, Any]]:
    found = {path: note for each in notes.values() for path, note in _module_notes(each).items()}
    return [
        {"path": _shown(path), "sites": len(note["sites"]), "problem": note["problem"]}
        for path, note in sorted(found.items())
    ]


def _sites(notes: Mapping[int, Sequence[Note]]) -> list[dict[str, Any]]:
    processes: dict[tuple[Any, ...], int] = defaultdict(int)
    for each in notes.values():
        for path, note in _module_notes(each).items():
            for site in note["sites"]:
                key = (_shown(path), *site)
                processes[key] += 1
    names = ("path", "line", "before", "after", "effect", "code")
    return [{**dict(zip(names, site, strict=True)), "processes": count} for site, count in sorted(processes.items())]


def _libraries(notes: Mapping[int, Sequence[Note]]) -> list[dict[str, Any]]:
    found: dict[tuple[str, int, str, str], int] = defaultdict(int)
    for note in _of("library", notes):
        found[_shown(note["file"]), note["line"], note["call"], note["after"]] += 1
    names = ("path", "line", "call", "after")
    return [{**dict(zip(names, site, strict=True)), "processes": count} for site, count in sorted(found.items())]


def _shown(path: str) -> str:
    """A path below the working directory is given from there."""
    place, here = Path(path), Path.cwd()
    return place.relative_to(here).as_posix() if place.is_relative_to(here) else path
