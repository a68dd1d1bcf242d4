"""Code written for a CUDA or NPU device computes on the CPU: an exporter records operators, not devices."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_DEVICES = {"cuda", "npu", "privateuseone"}
_TO_DEVICE = {torch.Tensor.cuda}


class OnCpu(TorchFunctionMode):
    """Within it, tensors that are made on or moved to CUDA or an NPU are made on or stay on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _TO_DEVICE or getattr(func, "__name__", "") == "npu":
            return args[0]
        changed = {name: _on_cpu(value) for name, value in (kwargs or {}).items()}
        return func(*map(_on_cpu, args), **changed)


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type in _DEVICES:
        return torch.device("cpu")
    if isinstance(value, str) and value.partition(":")[0] in _DEVICES:
        return "cpu"
    return value
