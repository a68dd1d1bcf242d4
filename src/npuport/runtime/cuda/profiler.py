"""``torch.cuda.profiler``: ranges for NVIDIA's profilers. There is none here, so that the calls have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def init(output_file: str, flags: object = None, output_mode: str = "key_value") -> None:
    """No effect."""


def start() -> None:
    """No effect; ``torch_npu.profiler`` records what an NPU does."""


def stop() -> None:
    """No effect."""


@contextmanager
def profile() -> Iterator[None]:
    """No effect."""
    yield
