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


class _SimulationWithTorchNpu:
    """Loads the simulation once somebody asks for torch_npu; it costs 50 ms, and many processes of a run never do."""

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        if fullname.partition(".")[0] != "torch_npu":
            return None
        sys.meta_path.remove(self)
        _begin("npuport.sim.loading", "follow_torch_npu")
        found = (finder.find_spec(fullname, path, target) for finder in list(sys.meta_path))
        return next((spec for spec in found if spec is not None), None)


if os.environ.get("NPUPORT_SIM") == "1":
    sys.meta_path.insert(0, _SimulationWithTorchNpu())
if os.environ.get("NPUPORT_AUTO", "0" if "NPUPORT_SIM" in os.environ else "1") == "1":
    _begin("npuport.runtime.startup", "install")
if os.environ.get("NPUPORT_DUMP"):
    _begin("npuport.precision.operators.starting", "follow_torch")
if os.environ.get("NPUPORT_BISECT"):
    _begin("npuport.precision.bisect.plan", "follow_torch")
if os.environ.get("NPUPORT_SUBSTITUTE"):
    _begin("npuport.precision.bisect.substitution", "follow_torch")
if os.environ.get("NPUPORT_DETERMINISTIC"):
    _begin("npuport.precision.preflight.determinism", "follow_imports")
if os.environ.get("NPUPORT_PREFLIGHT") or os.environ.get("NPUPORT_MONITOR"):
    _begin("npuport.precision.starting", "follow_torch")
if os.environ.get("NPUPORT_PROFILE"):
    _begin("npuport.performance.collecting.starting", "follow_torch")
_hand_over()
