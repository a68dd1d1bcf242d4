"""Libraries are not converted: they see that there is no CUDA, and most have a way of their own for an NPU.

Where one names CUDA all the same, ``x.cuda()`` and checkpoints go to the NPU, and what cannot is refused with its name
and the way out.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import serialization

from npuport.runtime import notes
from npuport.runtime.patches import Patches

_BEFORE_CUDA = 19  # PyTorch asks for the place of a storage in rising order; its own entry for CUDA has 20


def apply(patches: Patches) -> None:
    """Patch torch, which is loaded."""
    patches.replace(torch.Tensor, "cuda", _tensor_to_npu)
    patches.replace(torch.nn.Module, "cuda", _module_to_npu)
    patches.replace(torch.cuda, "_lazy_init", _refuse)
    before = list(serialization._package_registry)
    serialization.register_package(_BEFORE_CUDA, _no_tag, _restored)
    patches.do(lambda: serialization._package_registry.__setitem__(slice(None), before))


def _tensor_to_npu(tensor: torch.Tensor, device: Any = None, *arguments: Any, **keywords: Any) -> Any:
    _note("Tensor.cuda", "Tensor.npu")
    return tensor.npu(_on_npu(device), *arguments, **keywords)


def _module_to_npu(module: torch.nn.Module, device: Any = None) -> Any:
    _note("Module.cuda", "Module.npu")
    return module.npu(_on_npu(device))


def _note(call: str, after: str) -> None:
    """Each line of a library once, in a run that is reported."""
    if not notes.wanted():
        return
    frame = sys._getframe(2)
    site = (frame.f_code.co_filename, frame.f_lineno)
    if site not in _noted:
        _noted.add(site)
        notes.note("library", file=site[0], line=site[1], call=call, after=after)


_noted: set[tuple[str, int]] = set()


def _on_npu(device: Any) -> Any:
    from npuport.runtime import on_npu  # which most programs need no library for

    return on_npu.device(device)


def _no_tag(storage: Any) -> None:  # noqa: ARG001 - torch_npu tags what is saved
    return None


def _restored(storage: Any, location: str) -> Any:
    """A storage that a CUDA machine saved."""
    return storage.npu(torch.device(location).index) if location.startswith("cuda") else None


def _refuse() -> None:
    """``torch.cuda._lazy_init``: asked before PyTorch does anything with a CUDA device.

    Raises:
        AssertionError: as a PyTorch without CUDA raises it.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in {"torch", "torch_npu"}:
        frame = frame.f_back
    name = str(frame.f_globals.get("__name__", "?"))
    package = name.partition(".")[0]
    raise AssertionError(
        f"{name} ({frame.f_code.co_filename}:{frame.f_lineno}) asks for a CUDA device, and there is an NPU; "
        f"npuport converts the library too when it is named: npuport run --also {package}"
    )
