"""A pytest plugin: the processes that a case spawns come from a fork server which has imported torch_npu already.

Importing takes seconds, and torch_npu's distributed cases spawn thousands of processes, many for each case. A forked
one starts like a spawned one but for that: devices are not initialised before the fork, it gets the environment of the
process that starts it, and it ends as Python ends. What is read from the environment on import is read too early.

Cases count on it that a device takes seconds to shut down: a process ends without waiting until the tensors that it has
put into a queue are fetched. So a process lingers here until they are.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import time
from collections.abc import Mapping
from multiprocessing import context, resource_sharer, spawn
from typing import Any

IMPORTED = (
    "torch_npu",
    "torch_npu.testing.testcase",
    "torch_npu.testing.common_utils",
    "torch.distributed.tensor",
    "torch.testing._internal.common_distributed",
)
LINGER_SECONDS = 2
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
    _linger()
    return code


def _linger() -> None:
    sharer: Any = resource_sharer._resource_sharer  # type: ignore[attr-defined]
    end = time.monotonic() + LINGER_SECONDS
    while sharer._cache and time.monotonic() < end:
        time.sleep(0.01)
    sharer.stop(1)  # what is being sent is sent


# The fork server imports this module too, so that both sides of a fork have it.
spawn.get_preparation_data = _describe_with_environment
spawn.prepare = _prepare_with_environment
spawn._main = _main_with_ending
context._concrete_contexts["spawn"] = context._concrete_contexts["forkserver"]  # type: ignore[attr-defined]
multiprocessing.set_forkserver_preload([__name__, *IMPORTED])
