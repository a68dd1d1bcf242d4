"""``pynvml`` on an NPU: what torch.npu knows of the devices. The rest is "Not Supported", as for old GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

NVML_SUCCESS, NVML_ERROR_INVALID_ARGUMENT, NVML_ERROR_NOT_SUPPORTED = 0, 2, 3
NVML_TEMPERATURE_GPU = 0


class NVMLError(Exception):
    """An error of NVML, with its number."""

    def __init__(self, value: int = NVML_ERROR_NOT_SUPPORTED, message: str = "Not Supported") -> None:
        super().__init__(message)
        self.value = value


class NVMLError_NotSupported(NVMLError):
    """What an NPU has no answer for."""


class NVMLError_InvalidArgument(NVMLError):
    """A device that is not there."""


@dataclass(frozen=True)
class _Memory:
    total: int
    free: int
    used: int


@dataclass(frozen=True)
class _Utilization:
    gpu: int
    memory: int


def nvmlInit() -> None:
    """No effect: torch.npu needs none."""


def nvmlShutdown() -> None:
    """No effect."""


def nvmlDeviceGetCount() -> int:
    """The number of NPUs."""
    return int(torch.npu.device_count())


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    """The number is the handle. Raises NVMLError_InvalidArgument without such a device."""
    if not 0 <= index < nvmlDeviceGetCount():
        raise NVMLError_InvalidArgument(NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument")
    return index


def nvmlDeviceGetIndex(handle: int) -> int:
    """The device of a handle."""
    return handle


def nvmlDeviceGetName(handle: int) -> str:
    """The chip's name."""
    return str(torch.npu.get_device_name(handle))


def nvmlDeviceGetMemoryInfo(handle: int, version: Any = None) -> _Memory:  # noqa: ARG001
    """Bytes of device memory."""
    free, total = torch.npu.mem_get_info(handle)
    return _Memory(total, free, total - free)


def nvmlDeviceGetUtilizationRates(handle: int) -> _Utilization:
    """Percent of the compute units, and of the memory."""
    memory = nvmlDeviceGetMemoryInfo(handle)
    return _Utilization(int(torch.npu.utilization(handle)), round(100 * memory.used / memory.total))


def nvmlSystemGetDriverVersion() -> str:
    """CANN's version, as torch_npu says it. Raises NVMLError_NotSupported where it does not."""
    version = getattr(torch.version, "cann", None)
    if version is None:
        raise NVMLError_NotSupported(NVML_ERROR_NOT_SUPPORTED, "Not Supported: torch_npu does not know CANN's version")
    return str(version)


def __getattr__(name: str) -> Any:
    if name.startswith("nvml"):
        return _unsupported(name)
    raise AttributeError(f"npuport's stand-in for pynvml has no {name}")


def _unsupported(name: str) -> Any:
    def function(*arguments: Any, **keywords: Any) -> Any:  # noqa: ARG001
        raise NVMLError_NotSupported(NVML_ERROR_NOT_SUPPORTED, f"Not Supported: {name} has no counterpart on an NPU")

    return function
