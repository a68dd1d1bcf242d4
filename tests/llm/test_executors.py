"""The pool of workers: Ctrl-C reaches every process of a terminal, and the command alone acts on it."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("datatrove")

from datatrove.pipeline.base import PipelineStep

from npuport.llm.pipelines.executors import Executor, Stage


class Interrupted(PipelineStep):
    """Gets the signal of Ctrl-C in a worker, as from a terminal."""

    type, name = "TEST", "interrupted"

    def run(self, *_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)


class Long(PipelineStep):
    """Outlasts every patience."""

    type, name = "TEST", "long"

    def run(self, *_: Any, **__: Any) -> None:
        time.sleep(60)


def test_a_worker_does_not_die_of_ctrl_c_with_the_lock_of_its_queue(tmp_path: Path) -> None:
    Executor(workers=2).run([Stage("one", [Interrupted()], 4)], tmp_path, lambda _: None)


def test_ctrl_c_does_not_wait_for_tasks(tmp_path: Path) -> None:
    timer = threading.Timer(4, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Executor(workers=2).run([Stage("one", [Long()], 2)], tmp_path, lambda _: None)
    assert time.monotonic() - begun < 40
