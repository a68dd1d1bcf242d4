"""Converts modules of the user's own as Python imports them."""

from __future__ import annotations

import importlib.machinery
import os
import site
import sys
import sysconfig

from npuport.runtime import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

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
    import gc

    from npuport.runtime import kept

    collecting = gc.isenabled()
    gc.disable()  # with torch in memory, one collection costs more than the conversion of a module
    try:
        found = kept.converted(file, base, file.read_bytes())
    finally:
        if collecting:
            gc.enable()
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


class ConvertingLoader(importlib.machinery.SourceFileLoader):
    """Loads a Python file converted. Writes no bytecode beside the user's files, for it would not be theirs."""

    def get_code(self, fullname: str) -> types.CodeType:
        from pathlib import Path

        file = Path(self.path).absolute()
        depth = fullname.count(".") + (2 if file.name == "__init__.py" else 1)
        return converted_code(file, file.parents[min(depth, len(file.parents)) - 1])


class ConvertingFinder:
    """Finds what the finders behind it find; for the user's own source files it puts the converting loader in place.

    So modules of a project that is installed in editable mode are met, whichever finder leads to them.
    ``once_loaded`` is called with the name of each of the modules ``watched`` when it is loaded.
    """

    def __init__(self, watched: frozenset[str], once_loaded: Callable[[str], None]) -> None:
        self._watched = watched
        self._once_loaded = once_loaded

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = self._of_those_behind(fullname, path, target)
        if spec is None or spec.origin is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return spec
        if fullname in self._watched:
            spec.loader = _WatchedLoader(fullname, spec.origin, self._once_loaded)
        elif is_own(spec.origin) or fullname.partition(".")[0] in also():
            spec.loader = ConvertingLoader(fullname, spec.origin)
        return spec

    def _of_those_behind(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        """Python has asked those before it already; what is found is handed on, so that it is found once."""
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else finders:
            find = getattr(finder, "find_spec", None)
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                return spec
        return None


class _WatchedLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, once_loaded: Callable[[str], None]) -> None:
        super().__init__(fullname, path)
        self._once_loaded = once_loaded

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        self._once_loaded(self.name)


def also() -> frozenset[str]:
    """Packages of others that are converted too."""
    return frozenset(name.strip() for name in os.environ.get(ALSO, "").split(",") if name.strip())


def is_own(origin: str) -> bool:
    """Whether a file is the user's own: neither Python's, nor an installed package's, nor npuport's."""
    file = os.path.realpath(origin)
    return not any(file.startswith(folder) for folder in _foreign())


_foreign_folders: list[str] = []


def _foreign() -> Iterable[str]:
    if not _foreign_folders:
        names = ("stdlib", "platstdlib", "purelib", "platlib")
        folders = {sysconfig.get_paths()[name] for name in names} | {
            *site.getsitepackages(),
            site.getusersitepackages(),
        }
        folders.add(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
        _foreign_folders.extend(os.path.realpath(folder) + os.sep for folder in folders)
    return _foreign_folders
