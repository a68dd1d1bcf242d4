"""Run by every Python process of a run, for this folder stands first on its PYTHONPATH.

The folder alone means conversion: launchers that start processes on other machines hand PYTHONPATH on, but not every
variable. A simulated run says with NPUPORT_AUTO whether CUDA code is converted too.
"""

from __future__ import annotations

import importlib
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would cost each start 10 ms


def _hand_over() -> None:
    """Import the sitecustomize that this one hides, if there is one."""
    own = sys.modules.pop("sitecustomize")
    kept = list(sys.path)
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]  # noqa: PTH100
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        pass
    finally:
        sys.path[:] = kept
        sys.modules.setdefault("sitecustomize", own)


def _begin(module: str, function: str) -> None:
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        # Another Python. Most are a tool that the run happens to start; one with torch may be meant to train.
        find_spec = importlib.import_module("importlib.util").find_spec
        if find_spec("torch") is not None:
            print(f"npuport: {sys.executable} does not have npuport: what it runs is left as it is", file=sys.stderr)
        return
    getattr(loaded, function)()


if os.environ.get("NPUPORT_SIM") == "1":
    _begin("npuport.sim.loading", "follow_torch_npu")
if os.environ.get("NPUPORT_AUTO", "0" if "NPUPORT_SIM" in os.environ else "1") == "1":
    _begin("npuport.runtime.startup", "install")
_hand_over()
