"""The simulated NPU: the real torch_npu on a stand-in for CANN, with PyTorch's CPU kernels behind it.

It shows what a program does on an NPU (devices, operators, memory, errors) and computes the right numbers. It says
nothing about time.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterator

from npuport.search_path import STARTUP, first
from npuport.sim.chips import GIB, SimOptions
from npuport.sim.errors import SimulationUnavailable
from npuport.sim.loading import follow_torch_npu
from npuport.sim.recorder import recording

__all__ = [
    "SimOptions",
    "SimulationUnavailable",
    "activate",
    "child_processes",
    "environment",
    "is_active",
    "missing",
    "present_options",
    "recording",
]

_ACTIVE = "NPUPORT_SIM"


def environment(
    options: SimOptions | None = None, progress: Callable[[str], None] = lambda _message: None
) -> dict[str, str]:
    """Variables that put a child process, and every process it starts, on the simulated NPU.

    Compiles the simulated NPU on first use; ``progress`` then hears one line. Merge the result over ``os.environ``:
    ``LD_LIBRARY_PATH`` and ``PYTHONPATH`` already carry the present ones.

    Raises:
        SimulationUnavailable: torch, torch_npu or a compiler is missing, or they do not fit.
    """
    from npuport.sim import cann, kernels
    from npuport.sim.requirements import check

    options = options or SimOptions()
    installation = check()
    if not (cann.is_built(installation) and kernels.is_built(installation)):
        progress("compiling the simulated NPU (once, less than a minute)")
    libraries = os.fspath(cann.ensure(installation))
    return {
        _ACTIVE: "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",  # torch imports torch_npu at the end of its own import
        "PYTHONPATH": first(STARTUP, "PYTHONPATH"),  # its sitecustomize has the simulation follow torch_npu
        "NPUPORT_SIM_CHIP": options.chip,
        "NPUPORT_SIM_DEVICES": str(options.devices),
        "NPUPORT_SIM_MEMORY_BYTES": str((options.memory_gib or 0) * GIB),
        "NPUPORT_SIM_CUBE_CORES": str(options.cube_cores or 0),
        "NPUPORT_SIM_REDUCTIONS": options.reductions,
        "NPUPORT_SIM_INF_NAN": str(int(options.keeps_inf)),
        "NPUPORT_SIM_STRICT": str(int(options.strict)),
        "NPUPORT_SIM_KERNELS": os.fspath(kernels.ensure(installation)),
        "ASCEND_HOME_PATH": libraries,  # torch_npu prints a warning when there is none
        "ASCEND_OPP_PATH": f"{libraries}/opp",
        "LD_LIBRARY_PATH": first(libraries, "LD_LIBRARY_PATH"),
        # Operators run when they are called: errors and records belong to the line that caused them.
        "TASK_QUEUE_ENABLE": "0",
    }


@contextlib.contextmanager
def child_processes(options: SimOptions | None = None) -> Iterator[None]:
    """Processes started inside ``with`` run on the simulated NPU, and those that they start; this one stays as it is.

    For ``subprocess``, torchrun, and ``multiprocessing`` with the method "spawn" (a forked child is a copy of this
    process, with its torch). Sets variables of ``os.environ``, and sets them back.

    Raises:
        SimulationUnavailable: torch, torch_npu or a compiler is missing, or they do not fit.
    """
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="npuport-run-", ignore_cleanup_errors=True) as directory:
        inside = {**environment(options), "NPUPORT_SIM_RUN": directory}  # where the processes meet
        os.environ.update(inside)
        try:
            yield
        finally:
            for name in inside:
                if name in before:
                    os.environ[name] = before[name]
                else:
                    os.environ.pop(name, None)


def activate(options: SimOptions | None = None, progress: Callable[[str], None] = lambda _message: None) -> None:
    """Put this process on the simulated NPU. Must come before ``import torch``.

    Raises:
        SimulationUnavailable: something is missing, or torch is already imported.
    """
    if "torch" in sys.modules:
        raise SimulationUnavailable(
            "torch is already imported in this process, without the simulated NPU.",
            "call npuport.sim.activate() before the first import of torch, or start the script with npuport run --sim",
        )
    from npuport.sim import cann
    from npuport.sim.requirements import check

    os.environ.update(environment(options, progress))
    follow_torch_npu()
    installation = check()
    directory = cann.ensure(installation)
    # LD_LIBRARY_PATH was read when the process started; a library that is loaded already is found by its name all the
    # same.
    for name in cann.library_names(installation):
        ctypes.CDLL(os.fspath(directory / name), mode=ctypes.RTLD_GLOBAL)


def is_active() -> bool:
    """Whether this process runs on the simulated NPU."""
    return os.environ.get(_ACTIVE) == "1"


def present_options() -> SimOptions:
    """What the simulated run that this process belongs to simulates.

    Raises:
        KeyError: it belongs to none (see ``is_active``).
    """
    return SimOptions(
        os.environ["NPUPORT_SIM_CHIP"],
        int(os.environ["NPUPORT_SIM_DEVICES"]),
        int(os.environ["NPUPORT_SIM_MEMORY_BYTES"]) // GIB,
    )


def missing() -> list[str]:
    """Operators (``aten::…``, ``npu::…``) that torch_npu has and this running simulation refuses, sorted."""
    from npuport.sim import ops

    return sorted(ops.install().refused)
