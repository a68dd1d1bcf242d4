"""A pytest plugin: the processes that a case spawns come from a fork server which has imported torch_npu already.

Importing takes seconds, and torch_npu's distributed cases spawn thousands of processes, many for each case. A forked
one starts like a spawned one but for that: devices are not initialised before the fork, it gets the environment of the
process that starts it, and it ends as Python ends. What is read from the environment on import is read too early.

Cases put tensors into a queue and end, hoping that their parent fetches them first. Where processes share few cores
that race is lost, so a process lingers here until what it has queued is fetched.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
import time
from collections.abc import Mapping
from multiprocessing import context, resource_sharer, spawn, util
from typing import Any

IMPORTED = (
    "torch_npu",
    "torch_npu.testing.testcase",
    "torch_npu.testing.common_utils",
    "torch.distributed.tensor",
    "torch.testing._internal.common_distributed",
)
LINGER_SECONDS = 10
_ENVIRONMENT = "npuport_environment"
_describe, _prepare, _main = spawn.get_preparation_data, spawn.prepare, spawn._main


def _describe_with_environment(name: str) -> dict[str, Any]:
    return {**_describe(name), _ENVIRONMENT: dict(os.environ)}


def _prepare_with_environment(data: Mapping[str, Any]) -> None:
    if _ENVIRONMENT in data:
        os.environ.clear()
        os.environ.update(data[_ENVIRONMENT])
    _prepare(data)


def _main_with_ending(fd: int, parent_sentinel: int) -> int:
    """A process that the fork server makes would leave without torch_npu's shutdown."""
    code = _main(fd, parent_sentinel)
    atexit._run_exitfuncs()
    return code


def _linger() -> None:
    sharer: Any = resource_sharer._resource_sharer  # type: ignore[attr-defined]
    end = time.monotonic() + LINGER_SECONDS
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join(LINGER_SECONDS)
    while sharer._cache and time.monotonic() < end:
        time.sleep(0.01)
    sharer.stop(1)  # what is being sent is sent


def _linger_at_the_end(_anchor: object) -> None:
    # After queues are told to end (10), before the socket for their tensors goes (0).
    util.Finalize(None, _linger, exitpriority=1)


# The fork server imports this module too, so that both sides of a fork have it.
spawn.get_preparation_data = _describe_with_environment
spawn.prepare = _prepare_with_environment
spawn._main = _main_with_ending
context._concrete_contexts["spawn"] = context._concrete_contexts["forkserver"]  # type: ignore[attr-defined]
util.register_after_fork(_linger, _linger_at_the_end)
multiprocessing.set_forkserver_preload([__name__, *IMPORTED])
