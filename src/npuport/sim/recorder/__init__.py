"""What a run on the simulated NPU did: operators, synchronisations, copies, shapes, collectives, memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from npuport.sim.recorder.live import Recorder, running

__all__ = ["Recorder", "recording"]


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """Record what the block does on the simulated NPU; the recorder stays readable after it.

    Raises:
        RuntimeError: this process records already.
    """
    with running(Recorder()) as recorder:
        yield recorder
