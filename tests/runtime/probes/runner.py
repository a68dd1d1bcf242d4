"""Run every probe in a process of its own and write {name: "" or what went wrong} as JSON.

    python runner.py npuport|transfer_to_npu FILE [NAME…]

Needs the devices of an NPU, simulated or not: `npuport run --sim -- python runner.py …`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import tempfile
import traceback
import types
from collections.abc import Callable
from pathlib import Path

TIMEOUT_S = 60


def load(mode: str) -> types.ModuleType:
    """The probes, as one of the two tools presents them."""
    sys.path.insert(0, os.fspath(Path(__file__).parent))
    if mode == "npuport":
        from npuport.runtime.activation import activate

        activate()
    else:
        import early  # noqa: F401  # names bound before the import, as in a project that imports its modules first
        import torch_npu.contrib.transfer_to_npu  # noqa: F401
    return importlib.import_module("cuda_semantics")


def outcome(probe: Callable[[], None]) -> str:
    """Empty, or the error's last line; in a forked process, so that no probe sees what another did."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(TIMEOUT_S)
        os.close(read)
        said = ""
        try:
            probe()
        except BaseException as error:
            said = traceback.format_exception_only(error)[-1].strip()[:300] or "error"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return said if status == 0 else said or f"ended by {status}"


def main() -> None:
    report = Path(sys.argv[2]).absolute()
    module = load(sys.argv[1])
    os.chdir(tempfile.mkdtemp())  # profilers write where they are
    only = set(sys.argv[3:])
    probes = {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and value.__code__.co_argcount == 0
        and not name.startswith("_")
        and name not in ("tensor", "folder_of_cuda")
        and (not only or name in only)
    }
    found = {name: outcome(probe) for name, probe in probes.items()}
    report.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
