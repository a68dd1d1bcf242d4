"""What happens between the last line of a program and the end of its process."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from npuport.sim import endings


def test_the_end_waits_for_a_thread_of_a_backward_pass() -> None:
    at_rest, go, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("pt_autograd_0")
        go.set()
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            time.sleep(0.0002)
        at_rest.set()
        done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    go.wait()
    endings._wait_for_backward_threads()
    came_to_rest = at_rest.is_set()
    done.set()
    thread.join()
    assert came_to_rest


def test_without_such_a_thread_the_end_waits_for_nothing() -> None:
    started = time.monotonic()
    endings._wait_for_backward_threads()
    assert time.monotonic() - started < 0.1
