"""Switching the migration on and off in this process."""

from __future__ import annotations

import sys
from _thread import RLock  # threading would cost each start 3 ms

from npuport.runtime import children, importer, scripts
from npuport.runtime.patches import Patches
from npuport.runtime.stand_ins import StandInFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _State:
    """Who has activated, and what was changed for them."""

    def __init__(self) -> None:
        self.holders = 0
        self.patches = Patches()


_lock = RLock()
_state = _State()


def activate() -> None:
    """Convert the user's modules that are imported from now on, here and in processes that this one spawns.

    Every ``activate`` needs its ``deactivate``. When it fails, nothing has changed.
    """
    with _lock:
        if _state.holders == 0:
            try:
                _apply(_state.patches)
            except BaseException:
                _state.patches.take_back()
                raise
        _state.holders += 1


def deactivate() -> None:
    """Undo one ``activate``; the last one restores every attribute. Modules that are converted stay so.

    Raises:
        RuntimeError: when nothing is active.
    """
    with _lock:
        if _state.holders == 0:
            raise RuntimeError("npuport is not active")
        _state.holders -= 1
        if _state.holders == 0:
            _state.patches.take_back()


def is_active() -> bool:
    """Whether modules are converted now."""
    return _state.holders > 0


def _apply(patches: Patches) -> None:
    changes = {"torch": _apply_to_torch, "inspect": _apply_to_inspect}

    def once_loaded(name: str) -> None:
        if finder in sys.meta_path:
            with _lock:
                changes[name](patches)

    finder = importer.ConvertingFinder(frozenset(changes), once_loaded)
    sys.meta_path.insert(0, finder)
    patches.do(lambda: sys.meta_path.remove(finder))
    stand_ins = StandInFinder()
    sys.meta_path.append(stand_ins)
    patches.do(lambda: sys.meta_path.remove(stand_ins))
    scripts.hook(patches)
    children.follow(patches)
    for name in changes:
        if name in sys.modules:
            once_loaded(name)


def _apply_to_torch(patches: Patches) -> None:
    """What is reached by libraries, which are not converted, where they name CUDA explicitly."""
    from npuport.runtime import libraries

    libraries.apply(patches)


def _apply_to_inspect(patches: Patches) -> None:
    """``inspect.getsource`` and all that reads source through it see the code that runs; tracebacks read the file."""
    import inspect

    original = inspect.findsource

    def findsource(object: Any) -> tuple[list[str], int]:
        lines, number = original(object)
        try:
            file = inspect.getsourcefile(object) or ""
        except TypeError:
            return lines, number
        text = importer.converted_text(file)
        return (text.splitlines(keepends=True), number) if text is not None else (lines, number)

    patches.replace(inspect, "findsource", findsource)
