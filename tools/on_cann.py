"""Run a measuring script where ``import torch_npu`` works: with CANN as installed, else with the simulated one."""

from __future__ import annotations

import os
import subprocess
import sys

_MEASURING = "NPUPORT_MEASURING"


def ensure() -> None:
    """Return where torch_npu can be imported; else run this script again on the simulated CANN, and exit with its code.

    torch_npu's own kernels stay as they are: the CPU kernels of the simulated NPU are not put in their place.
    """
    if os.environ.get(_MEASURING) or "ASCEND_HOME_PATH" in os.environ:
        return
    from npuport.sim import environment

    variables = environment() | {"NPUPORT_SIM": "0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", _MEASURING: "1"}
    command = [sys.executable, *sys.argv]
    sys.exit(subprocess.run(command, env={**os.environ, **variables}, check=False).returncode)
