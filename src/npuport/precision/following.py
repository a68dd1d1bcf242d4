"""Following a training loop from outside, whatever it is written with: batches, losses, steps, loss scales."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.data import get_worker_info


@contextmanager
def unseen() -> Iterator[None]:
    """What is computed here is no call of the training: no recorder sees it. Also a decorator."""
    with _disable_current_modes(), torch.no_grad():
        yield


class Follower:
    """What may be done at each point; a subclass overrides what it needs."""

    def loaded(self, loader: Any, batch: Any) -> None:
        """A DataLoader gives a batch."""

    def enters(self, module: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """A module that no other module calls begins to compute with gradients."""

    def leaves(self, _module: torch.nn.Module) -> None:
        """The same module has computed."""

    def backward(self, loss: torch.Tensor) -> None:
        """A backward pass begins at a scalar."""

    def clipped(self, norm: torch.Tensor, limit: float) -> None:
        """Gradients were clipped to a norm of ``limit``; ``norm`` is what they had before."""

    def scaled(self, scaler: Any) -> None:
        """A loss is multiplied by the scale of a GradScaler."""

    def steps(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to change the parameters."""

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has changed the parameters."""

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """A GradScaler left a step out, because a gradient is not finite."""


@contextmanager
def follow(follower: Follower) -> Iterator[None]:
    """Have the code inside followed; in a data loader's worker nothing is.

    What torch.compile traced calls no hook: inputs of a model compiled in place (``model.compile()``) are not seen.
    """
    if get_worker_info() is not None:
        yield
        return
    guarded: Any = _Guarded(follower)
    with ExitStack() as undo:
        _modules(guarded, undo)
        _optimizers(guarded, undo)
        _functions(guarded, undo)
        yield


class _Guarded:
    """Hands calls on to a follower until one fails: the training goes on, and stderr says once what happened."""

    def __init__(self, follower: Follower) -> None:
        self._follower: Follower | None = follower

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            if self._follower is None:
                return
            try:
                getattr(self._follower, name)(*arguments)
            except Exception as error:
                if os.environ.get("NPUPORT_DEBUG"):
                    raise
                what = type(self._follower).__name__.strip("_").lower()
                self._follower = None
                print(
                    f"npuport: the {what} stopped, the training goes on ({type(error).__name__}: {error}). This is a "
                    "defect of npuport; NPUPORT_DEBUG=1 shows where.",
                    file=sys.stderr,
                )

        return call


@contextmanager
def follow_steps(follower: Follower) -> Iterator[None]:
    """The same of optimizers, losses and data only, so that no module costs anything."""
    with ExitStack() as undo:
        if get_worker_info() is None:
            _optimizers(follower, undo)
            _functions(follower, undo)
        yield


def _modules(follower: Follower, undo: ExitStack) -> None:
    depth = 0

    def enters(module: torch.nn.Module, arguments: Any) -> None:
        nonlocal depth
        if torch.compiler.is_compiling():
            return
        depth += 1
        if depth == 1 and torch.is_grad_enabled():
            follower.enters(module, arguments, _keywords(sys._getframe(1)))

    def leaves(module: torch.nn.Module, _arguments: Any, _result: Any) -> None:
        nonlocal depth
        if torch.compiler.is_compiling():
            return
        depth = max(0, depth - 1)
        if depth == 0 and torch.is_grad_enabled():
            follower.leaves(module)

    undo.callback(register_module_forward_pre_hook(enters).remove)
    undo.callback(register_module_forward_hook(leaves, always_call=True).remove)


def _keywords(frame: FrameType | None) -> dict[str, Any]:
    """The keyword arguments of the module call in whose frames we are: hooks for all modules are not given them."""
    for _ in range(3):
        if frame is None:
            break
        found = frame.f_locals.get("kwargs")
        if isinstance(found, dict):
            return found
        frame = frame.f_back
    return {}


def _optimizers(follower: Follower, undo: ExitStack) -> None:
    did_step = False

    def steps(optimizer: Any, _arguments: Any, _keywords: Any) -> None:
        follower.steps(optimizer)

    def stepped(optimizer: Any, _arguments: Any, _keywords: Any) -> None:
        nonlocal did_step
        did_step = True
        follower.stepped(optimizer)

    undo.callback(register_optimizer_step_pre_hook(steps).remove)
    undo.callback(register_optimizer_step_post_hook(stepped).remove)

    def scale(inner: Callable[..., Any]) -> Callable[..., Any]:
        def scale(self: Any, *arguments: Any, **keywords: Any) -> Any:
            if self.is_enabled():
                follower.scaled(self)
            return inner(self, *arguments, **keywords)

        return scale

    def step(inner: Callable[..., Any]) -> Callable[..., Any]:
        def step(self: Any, optimizer: Any, *arguments: Any, **keywords: Any) -> Any:
            nonlocal did_step
            did_step = False
            result = inner(self, optimizer, *arguments, **keywords)
            if not did_step:
                follower.skipped(optimizer)
            return result

        return step

    for scaler in _scalers():
        _replace(scaler, "scale", scale, undo)
        _replace(scaler, "step", step, undo)


def _scalers() -> list[Any]:
    """PyTorch's class, and that of torch_npu, which has methods of its own."""
    torch_npu = sys.modules.get("torch_npu")
    own = getattr(getattr(getattr(torch_npu, "npu", None), "amp", None), "GradScaler", None)
    return [torch.amp.GradScaler, *([own] if own is not None else [])]


def _functions(follower: Follower, undo: ExitStack) -> None:
    from torch.utils.data import dataloader

    def backward(inner: Callable[..., Any]) -> Callable[..., Any]:
        def backward(tensors: Any, *arguments: Any, **keywords: Any) -> Any:
            one = tensors[0] if isinstance(tensors, list | tuple) and len(tensors) == 1 else tensors
            if isinstance(one, torch.Tensor) and one.numel() == 1:
                follower.backward(one)
            return inner(tensors, *arguments, **keywords)

        return backward

    def clip(inner: Callable[..., Any]) -> Callable[..., Any]:
        def clip_grad_norm_(parameters: Any, max_norm: Any, *arguments: Any, **keywords: Any) -> Any:
            norm = inner(parameters, max_norm, *arguments, **keywords)
            if isinstance(norm, torch.Tensor):
                follower.clipped(norm, float(max_norm))
            return norm

        return clip_grad_norm_

    def following(inner: Callable[..., Any]) -> Callable[..., Any]:
        def _next_data(self: Any) -> Any:
            batch = inner(self)
            follower.loaded(self, batch)
            return batch

        return _next_data

    _replace(torch.autograd, "backward", backward, undo)
    for module in (torch.nn.utils, torch.nn.utils.clip_grad):
        _replace(module, "clip_grad_norm_", clip, undo)
    # Not __next__: torch_npu replaces that each time a loader begins.
    for iterator in (dataloader._SingleProcessDataLoaderIter, dataloader._MultiProcessingDataLoaderIter):
        _replace(iterator, "_next_data", following, undo)


def _replace(owner: Any, name: str, made: Callable[[Callable[..., Any]], Callable[..., Any]], undo: ExitStack) -> None:
    before = getattr(owner, name)
    setattr(owner, name, made(before))
    undo.callback(setattr, owner, name, before)


def tensors_in(value: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor in nested values with where it stands, such as "0" or "input_ids"."""
    if isinstance(value, torch.Tensor):
        yield name, value
        return
    if isinstance(value, dict) or hasattr(value, "items"):  # HF's BatchEncoding is no dict
        entries = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, list | tuple):
        entries = [(str(position), one) for position, one in enumerate(value)]
    else:
        return
    for key, one in entries:
        yield from tensors_in(one, f"{name}.{key}" if name else key)


def rank_of_process() -> int:
    """That of torch.distributed, else the variable RANK, else 0."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return int(os.environ.get("RANK", "0"))
