"""The pool of workers: Ctrl-C reaches every process of a terminal, and the command alone acts on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def run(self, _: Any, rank: int = 0, *__: Any) -> None:
        (self.folder / f"begun-{rank}").touch()
        time.sleep(60)


def test_a_worker_does_not_die_of_ctrl_c_with_the_lock_of_its_queue(tmp_path: Path) -> None:
    Executor(workers=2).run([Stage("one", [Interrupted()], 4)], tmp_path, lambda _: None)


def interrupted(folder: Path) -> None:
    """Run tasks that outlast every patience, and get the signal of Ctrl-C once they have begun."""

    def interrupt() -> None:
        while len(list(folder.glob("begun-*"))) < 2:
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    Executor(workers=2).run([Stage("one", [Long(folder)], 2)], folder, lambda _: None)


def test_ctrl_c_does_not_wait_for_tasks(tmp_path: Path) -> None:
    # In a process of its own, as a command has: what other tests left in this one may put a signal off.
    program = (
        "import pathlib, signal, test_executors\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "if __name__ == '__main__':\n"
        f"    test_executors.interrupted(pathlib.Path({str(tmp_path)!r}))\n"
    )
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    run = [sys.executable, str(tmp_path / "program.py")]
    environment = os.environ | {"PYTHONPATH": paths}
    ended = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == -signal.SIGINT, ended.stderr
    assert "KeyboardInterrupt" in ended.stderr
