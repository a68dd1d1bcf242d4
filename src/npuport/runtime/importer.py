"""Converts modules of the user's own as Python imports them."""

from __future__ import annotations

import gc
import importlib.machinery
import importlib.util
import os
import site
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from npuport.runtime import notes

if TYPE_CHECKING:
    from npuport.runtime.converted import Converted

ALSO = "NPUPORT_ALSO"
"""Variable with the names of installed packages to convert too, separated by commas."""


def converted_code(file: Path, base: Path) -> types.CodeType:
    """The compiled, converted source of ``file``, with the file's own name and line numbers.

    ``base`` is the directory that Python imports the file's project from. A file that cannot be converted is compiled
    as it is, with a word on stderr.

    Raises:
        OSError, SyntaxError: as Python's own import would.
    """
    with _uncollected():
        from npuport.runtime import kept

        found = kept.converted(file, base, file.read_bytes())
    if found.text is not None:
        _texts[os.fspath(file)] = found.text
    _tell(file, found)
    return found.code


_texts: dict[str, str] = {}


def converted_text(file: str) -> str | None:
    """What a module of the user's own was converted to; None for a file that was not."""
    return _texts.get(file)


def _tell(file: Path, found: Converted) -> None:
    """Nothing silent: what will fail is said when the module loads, not when it fails."""
    notes.note("module", file=os.fspath(file), sites=found.sites, problem=found.problem)
    if found.problem:
        print(f"npuport: {file} is left as it is: {found.problem}", file=sys.stderr)
    for line, _, after, effect, code in found.sites:
        if effect == "refused":
            print(f"npuport: {file}:{line} {code} {after}", file=sys.stderr)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection: with torch in memory, one costs more than the conversion of a module."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class ConvertingLoader(importlib.machinery.SourceFileLoader):
    """Loads a Python file converted. Writes no bytecode beside the user's files, for it would not be theirs."""

    def get_code(self, fullname: str) -> types.CodeType:
        file = Path(self.path).absolute()
        depth = fullname.count(".") + (2 if file.name == "__init__.py" else 1)
        return converted_code(file, file.parents[depth - 1])


class ConvertingFinder(MetaPathFinder):
    """Finds what Python would find; for the user's own source files it puts the converting loader in place.

    ``after_torch`` is called once torch is loaded.
    """

    def __init__(self, after_torch: Callable[[], None]) -> None:
        self._after_torch = after_torch

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        if fullname == "torch":
            spec.loader = _TorchLoader(fullname, spec.origin, self._after_torch)
        elif is_own(spec.origin) or fullname.partition(".")[0] in also():
            spec.loader = ConvertingLoader(fullname, spec.origin)
        else:
            return None
        return spec


class _TorchLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, after: Callable[[], None]) -> None:
        super().__init__(fullname, path)
        self._after = after

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        self._after()


def also() -> frozenset[str]:
    """Packages of others that are converted too."""
    return frozenset(name.strip() for name in os.environ.get(ALSO, "").split(",") if name.strip())


def is_own(origin: str) -> bool:
    """Whether a file is the user's own: neither Python's, nor an installed package's, nor npuport's."""
    file = os.path.realpath(origin)
    return not any(file.startswith(folder) for folder in _foreign())


@cache
def _foreign() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_paths()[name] for name in names} | {*site.getsitepackages(), site.getusersitepackages()}
    folders.add(os.fspath(Path(__file__).parent.parent))
    return tuple(os.path.realpath(folder) + os.sep for folder in folders)
