"""The device that a model is measured or evaluated on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from npuport.errors import UserError

if TYPE_CHECKING:
    import torch

_KINDS = ("npu", "cuda", "cpu")


@dataclass(frozen=True)
class Device:
    """``kind`` is "npu", "cuda" or "cpu"; ``simulated`` says that CPU kernels stand in for the NPU's."""

    kind: str
    index: int
    model: str
    simulated: bool

    @property
    def name(self) -> str:
        """As torch calls it, such as "npu:0"."""
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"


@contextmanager
def chosen_device(name: str) -> Iterator[Device]:
    """The device of a name such as "npu", "cuda:1" or "cpu"; "auto" takes the first kind that is there.

    Where the device is no NPU, torch_npu is hidden for as long: transformers and accelerate import what is installed,
    which fails without CANN.

    Raises:
        UserError: there is no such device on this machine, or no torch.
    """
    os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # `import torch` fails where torch_npu has no CANN
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise UserError("npuport model takes the packages torch and transformers:\n  pip install 'npuport[model]'")
    device = _device(name)
    hidden = device.kind != "npu" and "torch_npu" not in sys.modules
    if hidden:
        sys.modules["torch_npu"] = cast("ModuleType", None)  # `import torch_npu` now says that there is none
    try:
        yield device
    finally:
        if hidden:
            del sys.modules["torch_npu"]


def _device(name: str) -> Device:
    kind, _, number = name.partition(":")
    if kind not in (*_KINDS, "auto") or (":" in name and (kind in ("cpu", "auto") or not number.isdecimal())):
        raise UserError("--device takes auto, npu, npu:1, cuda, cuda:1 or cpu, not {given}.", given=name)
    if kind == "auto":
        kind = next(one for one in _KINDS if _count(one))
    index, count = int(number or 0), _count(kind)
    if index >= count:
        raise UserError(
            "there is no device {name} here ({count} of its kind). Try --device auto; `npuport doctor` says what is "
            "missing, and `npuport run --sim -- npuport model …` takes the simulated NPU.",
            name=f"{kind}:{index}",
            count=count,
        )
    simulated = kind == "npu" and os.environ.get("NPUPORT_SIM") == "1"
    model = "" if kind == "cpu" else str(_module_of(kind).get_device_name(index))
    return Device(kind, index, model, simulated)


def _module_of(kind: str) -> Any:
    """``torch.npu`` or ``torch.cuda``."""
    import torch

    return getattr(torch, kind)


def _count(kind: str) -> int:
    import torch

    if kind == "cpu":
        return 1
    if kind == "npu" and not _has_npu():
        return 0
    module = getattr(torch, kind)
    return int(module.device_count()) if module.is_available() else 0


def _has_npu() -> bool:
    """Whether torch_npu is installed and can be loaded, which takes CANN."""
    if find_spec("torch_npu") is None:
        return False
    try:
        import_module("torch_npu")
    except (ImportError, OSError, RuntimeError):
        return False
    return True


def peak_memory(device: Device) -> int:
    """Bytes: of the device's allocator since ``reset_peak_memory``; on the CPU the most this process ever held."""
    if device.kind == "cpu":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(_module_of(device.kind).max_memory_allocated(device.index))


def reset_peak_memory(device: Device) -> None:
    """Let the peak of a device's allocator begin anew; on the CPU that is not possible."""
    if device.kind != "cpu":
        _module_of(device.kind).reset_peak_memory_stats(device.index)


def synchronize(device: Device) -> None:
    """Wait until the device has done all that it was given."""
    if device.kind != "cpu":
        _module_of(device.kind).synchronize(device.index)


def memory_ran_out(error: Exception) -> bool:
    """Whether a device had too little memory. GPUs and NPUs have a class for it, the CPU's allocator has none."""
    import torch

    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in text or "not enough memory" in text


def dtype_called(name: str) -> torch.dtype | str:
    """The dtype of a name such as "bfloat16"; "auto", that of the checkpoint, stays as it is.

    Raises:
        UserError: there is no such dtype for models.
    """
    import torch

    known = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
    if name == "auto":
        return name
    if name not in known:
        raise UserError("--dtype takes auto, {known}, not {given}.", known=", ".join(known), given=name)
    return known[name]
