"""Operators whose kernels are written in Python, as the recorder sees them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

Inputs = tuple[tuple[Any, ...], ...]  # of each tensor argument: name, dtype, shape, and "cpu" where it is on the host

_LISTED = 4  # tensors of one argument that is a list, as in native/kernels/recorder.h
_inside = threading.local()


def reference_json(references: dict[str, dict[tuple[Any, ...], list[int]]]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "unlisted_shapes": 0,
            "unlisted_calls": 0,
            "shapes": [
                {"inputs": [list(one) for one in inputs], "calls": calls, "first_step": step, "site": site}
                for inputs, (calls, step, site) in seen.items()
            ],
        }
        for name, seen in references.items()
    ]


def observed(operator: str, function: Callable[..., Any], *, nested: bool) -> Callable[..., Any]:
    """``function``, the kernel of ``operator`` written in Python, and the recorder sees its calls.

    nested: it calls other operators of the device, which are not counted beside it.
    """
    from npuport.sim.recorder import live

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = live.active()
        if recorder is None or getattr(_inside, "nested", False):
            return function(*args, **kwargs)
        recorder.saw_reference(operator, _inputs(operator, args, kwargs))
        return _alone(function, args, kwargs) if nested else function(*args, **kwargs)

    return call


def _alone(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the call; what it calls is not counted."""
    import torch

    nest = torch.ops.npuport_sim.recorder_nest
    nest(1)
    _inside.nested = True
    try:
        return function(*args, **kwargs)
    finally:
        _inside.nested = False
        nest(-1)


def _inputs(operator: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
    """(name, dtype, shape) of each tensor argument, as native/kernels/recorder.h describes them."""
    found: list[tuple[Any, ...]] = []
    for name, value in [*zip(_argument_names(operator), args, strict=False), *kwargs.items()]:
        if isinstance(value, (list, tuple)):
            tensors = [(f"{name}[{index}]", item) for index, item in enumerate(value[:_LISTED])]
        else:
            tensors = [(name, value)]
        for label, tensor in tensors:
            if hasattr(tensor, "dtype") and hasattr(tensor, "shape"):
                place = ("cpu",) if tensor.device.type == "cpu" else ()
                found.append((label, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), *place))
    return tuple(found)


@functools.cache
def _argument_names(operator: str) -> list[str]:
    import torch

    base, _, overload = operator.partition(".")
    return [one.name for one in torch._C._get_schema(base, overload).arguments]
