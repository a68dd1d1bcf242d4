"""Modules that were converted before, kept in the user's cache directory: a second start converts nothing.

An entry is found by what it was made from: the source, its place, torch, the chip, Python, npuport's own files. What
the conversion saw of the project's other files stands in the entry, and must still be so.
"""

from __future__ import annotations

import atexit
import hashlib
import marshal
import os
import sys
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from functools import cache
from pathlib import Path

from npuport.entries import Entries
from npuport.runtime import target
from npuport.runtime.converted import Converted, Site

LIMIT = 200_000_000
"""Bytes of all entries together; those not used for longest are removed."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
_OWN = ("conversion", "facts", "findings.py", "rules", "runtime", "source")  # what decides how code is converted
_ABSENT, _PRESENT = "absent", "present"
_WHOLE = ""  # the path that stands for all files of a project


def converted(file: Path, base: Path, data: bytes) -> Converted:
    """What ``data``, the source of ``file``, becomes; ``base`` is where Python imports the file's project from.

    Raises:
        SyntaxError, ValueError: as Python's own import would.
    """
    project = _project(os.fspath(base))
    key = _key(file, base, data)
    found = _entry(_entries().read(key), project)
    if found is None:
        from npuport.runtime import in_memory  # loads the rules

        seen = Seen(project)
        found = in_memory.convert(file, base, data, seen)
        sites = [list(site) for site in found.sites]  # marshal takes no named tuples
        _keep(key, marshal.dumps((seen.states, found.code, found.text, sites, found.problem)))
    return found


def _entry(body: bytes | None, project: Files) -> Converted | None:
    """What an entry holds, if the project's files are still as its conversion saw them."""
    if body is None:
        return None
    states, code, text, sites, problem = marshal.loads(body)
    if any(project.state(path, state) != state for path, state in states.items()):
        return None
    return Converted(code, text, tuple(Site(*site) for site in sites), problem)


def _key(file: Path, base: Path, data: bytes) -> str:
    place = (os.fspath(file), os.fspath(base), os.environ.get("NPUPORT_STAND_INS"))
    python = (sys.version, sys.flags.optimize)
    return hashlib.sha256(repr((place, python, target.machine(), _own())).encode() + b"\n" + data).hexdigest()


@cache
def _own() -> str:
    """npuport's own files, by size and time."""
    found = []
    folders = [os.path.join(_PACKAGE, name) for name in _OWN]  # noqa: PTH118
    while folders:
        place = folders.pop()
        if os.path.isdir(place):  # noqa: PTH112
            folders += [entry.path for entry in os.scandir(place) if entry.name != "__pycache__"]
        else:
            about = os.stat(place)  # noqa: PTH116
            found.append((place, about.st_size, about.st_mtime_ns))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()


@cache
def _entries() -> Entries:
    return Entries(os.path.join(_cache_folder(), "converted"), ".module")  # noqa: PTH118


def _cache_folder() -> str:
    """npuport's folder in the user's cache directory: as platformdirs has it, which takes 15 ms to load."""
    if sys.platform == "linux":
        return os.path.join(os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache"), "npuport")  # noqa: PTH111, PTH118
    import platformdirs

    return platformdirs.user_cache_dir("npuport")


def _keep(key: str, body: bytes) -> None:
    _entries().write(key, body)
    _shrink_at_exit()


@cache
def _shrink_at_exit() -> None:
    atexit.register(lambda: _entries().shrink(LIMIT))


# -- the other files of a project ------------------------------------------------------------------------------------


class Files:
    """The state of a project's files, looked up once in this process."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._known: dict[tuple[str, bool], str] = {}

    @property
    def texts(self) -> Mapping[str, str]:
        """The Python files, by path."""
        return _texts(self.base)

    def state(self, path: str, like: str) -> str:
        """Whether a file is there; or a hash of its content, where ``like`` is one."""
        return self.presence(path) if like in (_ABSENT, _PRESENT) else self.content(path)

    def presence(self, path: str) -> str:
        """Whether a file is there."""
        if (path, False) not in self._known:
            there = os.path.isfile(os.path.join(self.base, path))  # noqa: PTH113, PTH118
            self._known[path, False] = _PRESENT if there else _ABSENT
        return self._known[path, False]

    def content(self, path: str) -> str:
        """A hash of a file's content, or of all files'; that it is absent, where it cannot be read."""
        if (path, True) not in self._known:
            self._known[path, True] = self._content(path)
        return self._known[path, True]

    def _content(self, path: str) -> str:
        if path == _WHOLE:
            return hashlib.sha256(repr([(each, self.content(each)) for each in self.texts]).encode()).hexdigest()
        try:
            with open(os.path.join(self.base, path), "rb") as file:  # noqa: PTH118, PTH123
                return hashlib.sha256(file.read()).hexdigest()
        except OSError:
            return _ABSENT


@cache
def _project(base: str) -> Files:
    return Files(base)


@cache
def _texts(base: str) -> Mapping[str, str]:
    from npuport.source.on_disk import TextsOnDisk

    return TextsOnDisk(Path(base))


class Seen(Mapping[str, str]):
    """The texts of a project's files, which remembers what was asked, and the answer."""

    def __init__(self, project: Files) -> None:
        self._project = project
        self.states: dict[str, str] = {}

    def __contains__(self, path: object) -> bool:
        there = path in self._project.texts
        if isinstance(path, str):
            self.states.setdefault(path, self._project.presence(path))
        return there

    def __getitem__(self, path: str) -> str:
        self.states[path] = self._project.content(path)
        return self._project.texts[path]

    def __iter__(self) -> Iterator[str]:
        self._look_at_all()
        return iter(self._project.texts)

    def __len__(self) -> int:
        self._look_at_all()
        return len(self._project.texts)

    def values(self) -> ValuesView[str]:
        self._look_at_all()
        return self._project.texts.values()

    def items(self) -> ItemsView[str, str]:
        self._look_at_all()
        return self._project.texts.items()

    def _look_at_all(self) -> None:
        self.states[_WHOLE] = self._project.content(_WHOLE)
