"""The simulation comes in right after torch_npu, however that is imported: by torch itself, or first of all."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys

from npuport.after_import import after_import

_REFUSED = {
    "torch_npu.dynamo.torchair": "torchair needs CANN's graph engine, which the simulated NPU does not have.\n"
    '  torch.compile(…, backend="aot_eager") captures graphs here too, and runs them operator by operator'
}


def follow_torch_npu() -> None:
    """Install the simulation at the end of the import of torch_npu. Twice is the same as once."""
    after_import("torch_npu", _install)
    if not any(isinstance(finder, _Refusing) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Refusing())


class _Refusing(importlib.abc.MetaPathFinder):
    """Says of modules that cannot work on the simulated NPU why."""

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname in _REFUSED:
            raise ImportError(_REFUSED[fullname], name=fullname)
        return None


def _install() -> None:
    from npuport.sim import compiling, endings, kernels, ops, refusals, rng, saturation
    from npuport.sim.recorder import process

    kernels.load_library()
    kernels.install()
    saturation.install()
    refusals.install()
    rng.install()
    ops.install()
    compiling.install()
    endings.install()
    process.install()
