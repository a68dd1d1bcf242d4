"""Run by every Python process of a simulated run, for this folder stands first on its PYTHONPATH."""

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


def _follow_torch_npu() -> None:
    try:
        loading = importlib.import_module("npuport.sim.loading")
    except ImportError:
        return  # another Python, which a tool of the run happens to start; the launcher has checked the one that counts
    loading.follow_torch_npu()


if os.environ.get("NPUPORT_SIM") == "1":
    _follow_torch_npu()
_hand_over()
