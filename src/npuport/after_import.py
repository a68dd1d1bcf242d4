"""Doing something right after a module has been imported, however that comes about. Imports nothing that takes time."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable, Sequence


def after_import(module: str, then: Callable[[], None]) -> None:
    """Call ``then`` at the end of the import of a top-level module; asking twice is the same as asking once."""
    if not any(isinstance(finder, _Finder) and finder.asks(module, then) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(module, then))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, then: Callable[[], None]) -> None:
        self._module, self._then = module, then

    def asks(self, module: str, then: Callable[[], None]) -> bool:
        return (self._module, self._then) == (module, then)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then)
        return spec


class _Loader(importlib.abc.Loader):
    """The loader of a module, and after it what was asked for."""

    def __init__(self, inner: importlib.abc.Loader, then: Callable[[], None]) -> None:
        self._inner, self._then = inner, then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self._inner.exec_module(module)
        self._then()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)  # get_source and the like, which inspect and linecache ask for
