"""Level O1: torch.amp's autocast, on from ``amp.initialize`` to the end of the program, as Apex patches torch for good.

Casts are not cached: nothing would tell autocast that an optimizer has changed the weights.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_started: list[str] = []
_registered: list[tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = []


def start(device_type: str, dtype: torch.dtype = torch.float16) -> None:
    """Cast from now on, on ``device_type``, in this thread."""
    for module, name, decorate in _registered:
        setattr(module, name, decorate(getattr(module, name)))
    _registered.clear()
    if device_type not in _started:
        torch.autocast(device_type, dtype=dtype, cache_enabled=False).__enter__()
        _started.append(device_type)


def stopped() -> Any:
    """A context in which nothing is cast."""
    return torch.autocast(_started[-1] if _started else "cpu", enabled=False)


def _is_active() -> bool:
    return any(torch.is_autocast_enabled(device_type) for device_type in _started)


def init(*arguments: Any, **keywords: Any) -> None:  # noqa: ARG001
    """Raises RuntimeError: this is the Apex of 2018, which Apex itself no longer supports."""
    raise RuntimeError("amp.init is no longer supported: call amp.initialize(model, optimizer, opt_level='O1')")


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() and value.device.type in _started else value
    if isinstance(value, tuple | list):
        parts = [_cast(part, dtype) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: _cast(part, dtype) for key, part in value.items()}
    return value


def _caster(dtype: torch.dtype) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*arguments: Any, **keywords: Any) -> Any:
            if not _is_active():
                return function(*arguments, **keywords)
            with stopped() if dtype is torch.float32 else torch.autocast(_started[-1], dtype=dtype):
                return function(*_cast(arguments, dtype), **_cast(keywords, dtype))

        return wrapper

    return decorate


half_function = _caster(torch.float16)
float_function = _caster(torch.float32)


def promote_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with its tensors in the widest dtype among them."""

    @functools.wraps(function)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        given = [part for part in (*arguments, *keywords.values()) if isinstance(part, Tensor)]
        kinds = [part.dtype for part in given if part.is_floating_point() and part.device.type in _started]
        if not _is_active() or len(set(kinds)) < 2:
            return function(*arguments, **keywords)
        widest = functools.reduce(torch.promote_types, kinds)
        return function(*_cast(arguments, widest), **_cast(keywords, widest))

    return wrapper


def _register(module: Any, name: str, decorate: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    if not hasattr(module, name):
        raise ValueError(f"No function named {name} in module {module}.")
    _registered.append((module, name, decorate))


def register_half_function(module: Any, name: str) -> None:
    """``module.name`` gets float16, from ``amp.initialize`` on. Raises ValueError where there is no such function."""
    _register(module, name, half_function)


def register_float_function(module: Any, name: str) -> None:
    """``module.name`` gets float32, from ``amp.initialize`` on. Raises ValueError where there is no such function."""
    _register(module, name, float_function)


def register_promote_function(module: Any, name: str) -> None:
    """``module.name`` gets one dtype, from ``amp.initialize`` on. Raises ValueError where there is no such function."""
    _register(module, name, promote_function)
