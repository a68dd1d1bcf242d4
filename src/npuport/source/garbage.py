"""When Python may collect garbage while many files are parsed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_EVERY = 5000  # files; trees free themselves, what is left is small


@contextmanager
def seldom_collected() -> Iterator[Callable[[int], None]]:
    """Collect once in 5,000 files: syntax trees in memory make each collection long, and Python would start thousands,
    which cost several times the work itself. Yields the function to call with the number of files done."""
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()  # what is there already stays
    done = 0

    def collect(files: int) -> None:
        nonlocal done
        done += files
        if done >= _EVERY:
            gc.collect()
            done = 0

    try:
        yield collect
    finally:
        gc.freeze()  # so that the next collection does not start with all that came together
        if enabled:
            gc.enable()
        gc.unfreeze()
