"""``torch.cuda.nvtx`` over ``torch_npu.npu.mstx``, which CANN's profiler shows in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_open: list[int] = []


def range_push(msg: str) -> int:
    """Open a range inside the current one; the depth from 0."""
    _open.append(range_start(msg))
    return len(_open) - 1


def range_pop() -> int:
    """Close the innermost range; its depth."""
    if _open:
        range_end(_open.pop())
    return len(_open)


def range_start(msg: str) -> int:
    """A range's number, for ``range_end``."""
    return int(torch.npu.mstx.range_start(msg) or 0)


def range_end(range_id: int) -> None:
    """End the range of this number."""
    torch.npu.mstx.range_end(range_id)


def mark(msg: str) -> None:
    """Mark a moment."""
    torch.npu.mstx.mark(msg)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range for a block of code, or for every call of a function."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
