"""Switching the migration on and off in this process."""

from __future__ import annotations

import inspect
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

from npuport.runtime import children, importer, scripts
from npuport.runtime.patches import Patches
from npuport.runtime.stand_ins import StandInFinder


@dataclass
class _State:
    """Who has activated, and what was changed for them."""

    holders: int = 0
    patches: Patches = field(default_factory=Patches)


_lock = threading.RLock()
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
    def after_torch() -> None:
        if finder in sys.meta_path:
            _apply_to_torch(patches)

    finder = importer.ConvertingFinder(after_torch)
    sys.meta_path.insert(0, finder)
    patches.do(lambda: sys.meta_path.remove(finder))
    stand_ins = StandInFinder()
    sys.meta_path.append(stand_ins)
    patches.do(lambda: sys.meta_path.remove(stand_ins))
    patches.replace(inspect, "findsource", _finding_converted(inspect.findsource))
    scripts.hook(patches)
    children.follow(patches)
    if "torch" in sys.modules:
        _apply_to_torch(patches)


def _apply_to_torch(patches: Patches) -> None:
    """What is reached by libraries, which are not converted, where they name CUDA explicitly."""
    from npuport.runtime import libraries

    with _lock:
        libraries.apply(patches)


def _finding_converted(original: Any) -> Any:
    """``inspect.getsource`` and all that reads source through it see the code that runs; tracebacks read the file."""

    def findsource(object: Any) -> tuple[list[str], int]:
        lines, number = original(object)
        try:
            file = inspect.getsourcefile(object) or ""
        except TypeError:
            return lines, number
        text = importer.converted_text(file)
        return (text.splitlines(keepends=True), number) if text is not None else (lines, number)

    return findsource
