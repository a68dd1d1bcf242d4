"""A program that ends right after a backward pass ends as its last line says: with its own exit code.

``backward()`` returns a moment before PyTorch's thread of the device lets go of the pass, which holds a Python object
(torch/autograd/graph.py stashes its context). Python up to 3.13 kills a thread that asks for the interpreter's lock
once the interpreter is ending; this one is inside a destructor then, and the process aborts with "terminate called
without an active exception" (measured on torch 2.13.0). A real device takes longer to shut down than the thread needs.
"""

from __future__ import annotations

import atexit
import time
from pathlib import Path

_THREADS = "pt_autograd_"  # torch/csrc/autograd/engine.cpp names one thread a device so
_PAUSE_S = 0.002
_LIMIT_S = 2.0


def install() -> None:
    """Let the threads of backward passes come to rest before the interpreter ends."""
    atexit.register(_wait_for_backward_threads)


def _wait_for_backward_threads() -> None:
    until = time.monotonic() + _LIMIT_S
    before: list[str] = []
    while (now := _activity()) != before or any(line.startswith("R") for line in now):
        if time.monotonic() > until:
            return
        before = now
        time.sleep(_PAUSE_S)  # gives the interpreter's lock to whoever waits for it


def _activity() -> list[str]:
    """For each thread of backward passes its state ("R": running, or wants to) and how often it was switched."""
    return sorted(filter(None, map(_activity_of, Path("/proc/self/task").glob("*"))))


def _activity_of(task: Path) -> str:
    try:
        if not (task / "comm").read_text().startswith(_THREADS):
            return ""
        status = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines())
    except OSError:
        return ""  # it has ended
    return f"{status['State']} {task.name} {status['voluntary_ctxt_switches']}"
