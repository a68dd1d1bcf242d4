"""Recording in a Python process that `npuport run --dump` starts, from the import of torch on. Imports no torch."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path

FOLDER, STEPS = "NPUPORT_DUMP", "NPUPORT_DUMP_STEPS"
"""Variables: where the steps go, and which, as "first:last" with the last one left out."""


def follow_torch() -> None:
    """Begin to record when torch has been imported. Twice is the same as once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """The loader of torch, and after it the recording."""

    def __init__(self, inner: importlib.abc.Loader) -> None:
        self._inner = inner

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self._inner.exec_module(module)
        import atexit

        sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]

        from npuport.precision.operators.recording import record

        first, _, last = os.environ.get(STEPS, "0:1").partition(":")
        recording = record(Path(os.environ[FOLDER]), range(int(first), int(last)))
        recording.__enter__()
        atexit.register(recording.__exit__, None, None, None)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)  # get_source and the like, which inspect and linecache ask for
