"""What converted code calls where a value is known at run time only (see ``leftovers``). No call here needs a device.

Everything that does not name CUDA passes through unchanged: devices of the CPU, dtypes, tensors.
"""

from __future__ import annotations

import re
from typing import Any

import torch

from npuport.runtime import cuda

__all__ = ["cuda"]

_DEVICE = re.compile(r"cuda(:\d+)?")
_BACKENDS = re.compile(r"(?:\w+:)?nccl(?:,|$)|(?:^|,)cuda:\w+")


def device(value: Any) -> Any:
    """A device, or whatever holds devices (a table for ``map_location``, a list of ids), on the NPU instead of CUDA."""
    kind = type(value)
    if kind is str:
        return "npu" + value[4:] if value.startswith("cuda") and _DEVICE.fullmatch(value) else value
    if kind is torch.device:
        return torch.device("npu", value.index) if value.type == "cuda" else value
    if kind is dict:
        return {name: device(place) for key, place in value.items() for name in (key, device(key))}
    if kind is list or kind is tuple:
        return kind(map(device, value))
    return value


def backend(value: Any) -> Any:
    """A backend of torch.distributed: ``nccl`` is ``hccl``, ``cpu:gloo,cuda:nccl`` is ``cpu:gloo,npu:hccl``."""
    if not isinstance(value, str) or not _BACKENDS.search(value.lower()):
        return value
    parts = (part.rpartition(":") for part in value.lower().split(","))
    return ",".join(kind.replace("cuda", "npu") + colon + name.replace("nccl", "hccl") for kind, colon, name in parts)


def word(value: Any) -> Any:
    """What is compared: a device or a backend."""
    return backend(device(value))


def holds(text: str, whole: Any) -> bool:
    """``text in whole``, where ``text`` names a device or a backend."""
    return text in whole or word(text) in word(whole)


def starts(whole: Any, prefix: str, *places: int) -> bool:
    """``whole.startswith(prefix, …)``, where ``prefix`` names a device."""
    found: bool = whole.startswith(prefix, *places) or word(whole).startswith(word(prefix), *places)
    return found


def double(value: Any, *arguments: Any) -> Any:
    """``value.double()``. torch_npu makes float32 of it on the device; by way of the CPU it stays float64."""
    if arguments or not isinstance(value, torch.Tensor | torch.nn.Module):
        return value.double(*arguments)
    if isinstance(value, torch.nn.Module):
        return value._apply(lambda each: double(each) if each.is_floating_point() else each)
    if value.device.type != "npu" or value.dtype == torch.float64:
        return value.double()
    return value.cpu().double().to(value.device)


def memory_format(value: Any) -> Any:
    """torch_npu stores contiguous tensors only: ``channels_last`` changes no result, only where numbers lie."""
    return torch.contiguous_format if value in (torch.channels_last, torch.channels_last_3d) else value


def set_default_tensor_type(kind: Any) -> None:
    """``torch.set_default_tensor_type`` of a CUDA type: its dtype, and the NPU as the default device."""
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
    if not name.startswith(("torch.cuda.", "torch.npu.", "torch_npu.")):
        torch.set_default_tensor_type(kind)
    else:
        torch.set_default_dtype(_DTYPES[name.rpartition(".")[2]])
        torch.set_default_device("npu")


_DTYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
}
