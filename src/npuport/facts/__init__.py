"""What is known about Ascend: typed look-ups over the tables in data/, each entry with its source and certainty.

Importing this package loads no table and no torch; a table is read at its first look-up.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npuport.facts.cuda_names import CudaName as CudaName
    from npuport.facts.cuda_names import torch_cuda as torch_cuda
    from npuport.facts.cuda_names import torch_cuda_names as torch_cuda_names

_HOMES = {
    "cuda_names": ("CudaName", "torch_cuda", "torch_cuda_names"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Load the module that holds ``name`` at its first use."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
