"""tools/warm_children.py: a process that a case spawns is like a spawned one, but for the imports."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
CASE = """
import atexit, multiprocessing, os, sys, time

import torch
import torch.multiprocessing

def child(answers, value):
    atexit.register(print, "ends as Python ends", flush=True)
    answers.put((value, os.environ["SET_BY_THE_CASE"], "torch_npu" in sys.modules, torch.npu.is_initialized()))

def queue_a_tensor(queue):
    queue.put(torch.arange(3))

def test_children():
    for value in ("first", "second"):
        os.environ["SET_BY_THE_CASE"] = value  # the fork server does not have it
        context = multiprocessing.get_context("spawn")
        answers = context.SimpleQueue()
        process = context.Process(target=child, args=(answers, value))
        process.start()
        assert answers.get() == (value, value, True, False)
        process.join()
        assert process.exitcode == 0
    queue = torch.multiprocessing.get_context("spawn").Queue()
    leaving = context.Process(target=queue_a_tensor, args=(queue,))
    leaving.start()
    time.sleep(0.5)
    assert queue.get().tolist() == [0, 1, 2]
    leaving.join()
    failing = context.Process(target=sys.exit, args=(3,))
    failing.start()
    failing.join()
    assert failing.exitcode == 3
"""


def test_children_of_a_case(simulated: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "test_case.py").write_text(CASE)
    options = [str(tmp_path / "test_case.py"), "-q", "-s", "-p", "warm_children", "-p", "no:cacheprovider"]
    program = f"""
import os, sys
import pytest
sys.path.insert(0, {str(TOOLS)!r})
os.environ["PYTHONPATH"] = os.pathsep.join([{str(TOOLS)!r}, os.environ["PYTHONPATH"]])
sys.exit(pytest.main({options!r}))
"""
    done = simulated(["-c", program])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ends as Python ends") == 2
