"""Scripts that Python runs by their path: no import reaches them.

Before it reads the file, Python asks ``sys.path_hooks`` whether the path is a place to import from, as a zip file is,
and then runs the module ``__main__`` that it finds there. So do ``runpy.run_path`` and with it the children that
multiprocessing spawns, or forks from its server, which run the main script once more. A script of the user's own
is answered for here, and runs in the same process as it would alone, converted.

Source: https://docs.python.org/3/using/cmdline.html#cmdoption-arg-script (in force in CPython 3.10 to 3.13).
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import sysconfig

from npuport.runtime import importer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from pathlib import Path
    from typing import Any

    from npuport.runtime.patches import Patches

_ENTRY = compile(f"__import__('sys').modules[{__name__!r}].execute(globals())", "<npuport>", "exec")
_NPUPORT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120


def hook(patches: Patches) -> None:
    """Answer for scripts from now on."""
    sys.path_hooks.insert(0, _finder)
    patches.do(_unhook)


def _unhook() -> None:
    sys.path_hooks.remove(_finder)
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, _ScriptFinder):
            del sys.path_importer_cache[path]


def _finder(path: str) -> _ScriptFinder:
    """The entry of ``sys.path_hooks``.

    Raises:
        ImportError: the path is no script of the user's own.
    """
    if not (path.endswith(".py") and os.path.isfile(path) and _is_own(path)):  # noqa: PTH113 - asked at every start
        raise ImportError
    return _ScriptFinder(path)


def _is_own(path: str) -> bool:
    tools = os.path.realpath(sysconfig.get_path("scripts")) + os.sep
    return importer.is_own(path) and not os.path.realpath(path).startswith(tools)


class _ScriptFinder:
    def __init__(self, path: str) -> None:
        self._path = path

    def find_spec(self, fullname: str, target: types.ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        del target
        if fullname != "__main__":
            return None
        # The loader is none of importlib.abc's: importing that would cost every start.
        return importlib.machinery.ModuleSpec(fullname, _ScriptLoader(), origin=self._path)  # type: ignore[arg-type]


class _ScriptLoader:
    """All that runpy asks of a loader. importlib.abc.Loader would cost each start the import of typing."""

    def get_code(self, fullname: str) -> types.CodeType:
        del fullname
        return _ENTRY


class _Main:
    """The main module of this process."""

    def __init__(self) -> None:
        self.expected: str | None = None  # the script that Python is about to run
        self.namespace: dict[str, Any] | None = None  # of the module, once it runs converted


_main = _Main()


def expect_main(path: str) -> None:
    """Say what ``sys.argv[0]`` is before Python runs it."""
    _main.expected = os.path.abspath(path) if path.endswith(".py") else None  # noqa: PTH100 - asked at every start


def execute(namespace: dict[str, Any]) -> None:
    """Run the script named by ``__file__`` in a module that runpy has prepared, as Python prepares it for a script."""
    from pathlib import Path

    path = namespace["__file__"]
    if path in sys.path:
        sys.path.remove(path)  # where a zip file would have to be
    namespace.update(__spec__=None, __cached__=None, __loader__=None)
    if namespace["__name__"] == "__main__" and os.path.abspath(path) == _main.expected:  # noqa: PTH100
        _main.expected = None
        namespace.update(__package__=None, __loader__=importlib.machinery.SourceFileLoader("__main__", path))
        if not getattr(sys.flags, "safe_path", False):
            sys.path.insert(0, os.path.dirname(os.path.realpath(path)))  # noqa: PTH120
        run_main(Path(path).absolute(), namespace)
    else:
        file = Path(path).absolute()
        exec(importer.converted_code(file, file.parent), namespace)


def run_main(script: Path, namespace: dict[str, Any]) -> None:
    """Execute a script, converted, as the main module.

    Converted code keeps its line numbers, so the user's own file explains every traceback; the frames between Python
    and the script are taken out of it.
    """
    _main.namespace = namespace
    sys.excepthook = _without_our_frames(sys.excepthook)
    exec(importer.converted_code(script, script.parent), namespace)


def is_converted(main: types.ModuleType) -> bool:
    """Whether the main module runs converted."""
    return main.__dict__ is _main.namespace


def _without_our_frames(hook: Any) -> Any:
    def excepthook(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        inner = trace
        while inner is not None and inner.tb_frame.f_code is not run_main.__code__:
            inner = inner.tb_next
        if inner is not None:
            while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_NPUPORT):
                inner = inner.tb_next
            trace = inner
            error.__traceback__ = trace  # which Python prints, whatever it is given
        hook(kind, error, trace)

    return excepthook
