"""What ``torch.cuda`` means to a CUDA program on an NPU.

Names with a counterpart lead to ``torch.npu``. The functions here answer what has none; each says what it stands for.
Any other name raises an AttributeError with the reason, so that ``hasattr`` works.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from npuport.facts import chip, torch_cuda
from npuport.runtime.cuda import comm, cudnn, nccl, nvtx, profiler
from npuport.runtime.target import settings

__all__ = ["comm", "cudnn", "nccl", "nvtx", "profiler"]

VERSION = "12.4"
"""Answer to ``torch.version.cuda``: a CUDA that has all that programs ask for. CANN has its own versions."""

_WITH_BF16, _WITHOUT = (8, 0), (7, 0)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """(8, 0), NVIDIA's first with bfloat16 and TF32, for chips that have them; (7, 0) for others.

    ``TORCH_NPU_DEVICE_CAPABILITY`` decides instead, as in torch_npu.
    """
    if "TORCH_NPU_DEVICE_CAPABILITY" in os.environ:
        found: tuple[int, int] = torch.npu.get_device_capability(device)
        return found
    found_chip = chip(settings().chip)
    return _WITH_BF16 if found_chip is None or found_chip.bf16 else _WITHOUT


class DeviceProperties:
    """torch_npu's properties of a device, and those of CUDA's that follow from the capability."""

    warp_size = 32

    def __init__(self, properties: Any, capability: tuple[int, int]) -> None:
        self._properties = properties
        self.major, self.minor = capability

    def __getattr__(self, name: str) -> Any:
        return getattr(self._properties, name)

    def __repr__(self) -> str:
        return repr(self._properties)


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Properties of a device, with ``major`` and ``minor``."""
    place = torch.npu.current_device() if device is None else device
    return DeviceProperties(torch.npu.get_device_properties(place), get_device_capability())


def get_arch_list() -> list[str]:
    """The architecture that the capability stands for."""
    return ["sm_{}{}".format(*get_device_capability())]


def get_gencode_flags() -> str:
    """No flags: there is no nvcc."""
    return ""


def is_tf32_supported() -> bool:
    """HF32 stands for TF32."""
    return get_device_capability() >= _WITH_BF16


def list_gpu_processes(device: Any = None) -> str:  # noqa: ARG001 - the processes of all devices
    """What ``npu-smi info`` says; a sentence where there is no npu-smi."""
    import shutil
    import subprocess

    if shutil.which("npu-smi") is None:
        return "npu-smi is not on the search path"
    return subprocess.run(["npu-smi", "info"], capture_output=True, text=True, check=False).stdout


class _Runtime:
    """``torch.cuda.cudart()``: the functions of NVIDIA's runtime that programs call by hand."""

    def cudaProfilerStart(self) -> int:
        profiler.start()
        return 0

    def cudaProfilerStop(self) -> int:
        profiler.stop()
        return 0

    def cudaMemGetInfo(self, device: int) -> tuple[int, int]:
        free, total = torch.npu.mem_get_info(device)
        return free, total

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"cudart().{name} is NVIDIA's runtime; an NPU has CANN instead")


def cudart() -> _Runtime:
    """An object with the functions of cudart that have a meaning on an NPU."""
    return _Runtime()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    entry = torch_cuda(f"torch.cuda.{name}")
    if entry is None:
        return _of_npu(f"torch.npu.{name}", f"torch.cuda has no {name}")
    if entry.npu_name is None:
        raise AttributeError(
            f"torch.cuda.{name} has no counterpart on an NPU" + (f": {entry.note}" if entry.note else "")
        )
    return _of_npu(entry.npu_name, f"torch.cuda.{name} has no counterpart in this torch_npu")


def _of_npu(path: str, otherwise: str) -> Any:
    found: Any = torch
    for part in path.split(".")[1:] if path.startswith("torch.") else ():
        found = getattr(found, part, None)
    if found is None or found is torch:
        raise AttributeError(otherwise)
    return found
