"""Work on tensors shared out to threads: torch computes without Python's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

_THREADS = 8  # beyond that, reading the recorded tensors is what takes the time

T = TypeVar("T")
R = TypeVar("R")

Advance = Callable[[int], None]
"""Is told how many more pieces of the work are done."""


@contextmanager
def one_thread_each() -> Iterator[None]:
    """torch's own threads off: calls are many and small, and are shared out to threads of ours."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_threads(work: Callable[[T], R], items: Iterable[T], advance: Advance | None = None) -> Iterator[R]:
    """What the work gives for each item, in their order."""
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _THREADS)) as pool:
        for result in pool.map(work, items):
            if advance is not None:
                advance(1)
            yield result
