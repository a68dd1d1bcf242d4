"""Arguments of operators that are no tensors, as plain values that a file can hold."""

from __future__ import annotations

from typing import Any

import torch

from npuport.precision.operators.communication import described

_SIMPLE: tuple[Any, ...] = (int, float, complex, str)
AS_THEY_ARE = frozenset({*_SIMPLE, bool, type(None)})
"""The classes whose values ``plain`` gives back unchanged."""


def plain(value: Any) -> Any:
    """A value by itself where a file can hold it; else by what it is: ("dtype", "float32"), ("device", "npu"),
    ("group", its name, its ranks), ("reduction", "sum"), ("object", its class)."""
    if type(value) in AS_THEY_ARE:
        return value
    if isinstance(value, torch.dtype):
        return ("dtype", str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return ("device", value.type)
    if isinstance(value, torch.layout | torch.memory_format):
        return ("layout", str(value))
    if isinstance(value, torch.ScriptObject):
        return described(value)
    if isinstance(value, int | float | complex | str):  # of a class of its own, such as an IntEnum
        return next(kind(value) for kind in _SIMPLE if isinstance(value, kind))
    return ("object", type(value).__name__)
