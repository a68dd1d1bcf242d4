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
    known = next((finder for finder in sys.meta_path if isinstance(finder, _Finder) and finder.module == module), None)
    if known is None:
        known = _Finder(module)
        sys.meta_path.insert(0, known)
    if then not in known.then:
        known.then.append(then)


class _Finder(importlib.abc.MetaPathFinder):
    """One for a module, however many ask: only the first finder that knows a module is ever used."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.then: list[Callable[[], None]] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.then)
        return spec


class _Loader(importlib.abc.Loader):
    """The loader of a module, and after it what was asked for."""

    def __init__(self, inner: importlib.abc.Loader, then: Sequence[Callable[[], None]]) -> None:
        self._inner, self._then = inner, then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self._inner.exec_module(module)
        for then in self._then:
            then()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)  # get_source and the like, which inspect and linecache ask for
