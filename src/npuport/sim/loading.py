"""The simulation comes in right after torch_npu, however that is imported: by torch itself, or first of all."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence

_FOLLOWED = "torch_npu"
_REFUSED = {
    "torch_npu.dynamo.torchair": "torchair needs CANN's graph engine, which the simulated NPU does not have.\n"
    '  torch.compile(…, backend="aot_eager") captures graphs here too, and runs them operator by operator'
}


def follow_torch_npu() -> None:
    """Install the simulation at the end of the import of torch_npu. Twice is the same as once."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in _REFUSED:
            raise ImportError(_REFUSED[fullname], name=fullname)
        if fullname != _FOLLOWED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    """The loader of torch_npu, and after it the simulation."""

    def __init__(self, inner: importlib.abc.Loader) -> None:
        self._inner = inner

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        self._inner.exec_module(module)
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

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)  # get_source and the like, which inspect and linecache ask for
