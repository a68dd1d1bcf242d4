"""Giving each module the input that it had in a recorded run, so that errors do not add up from module to module."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from npuport.precision.bisect.substitution import ModuleError, Substitution, write_errors
from npuport.precision.following import rank_of_process
from npuport.precision.operators.agreement import apart
from npuport.precision.operators.calls import ModuleCall, Step, TensorRef, read_step, step_file
from npuport.precision.operators.modules import Modules
from npuport.precision.operators.renames import plain_path


class _Replaced(torch.autograd.Function):
    """Other values in place of a tensor; its gradient is that of these."""

    @staticmethod
    def forward(_context: Any, _own: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return other.clone()

    @staticmethod
    def backward(_context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradients[0], None


class Substituting:
    """Replaces the inputs of modules that have no modules in them, in one step, and measures what they make of them."""

    def __init__(self, plan: Substitution) -> None:
        self._plan = plan
        self._modules = Modules()
        self._done = 0
        self._times: Counter[str] = Counter()
        self._reference: Step | None = None
        self._calls: dict[str, list[ModuleCall]] = {}
        self._before: list[tuple[ModuleCall | None, float]] = []
        self._errors: list[ModuleError] = []
        self._hooks: list[Any] = []

    def start(self) -> None:
        self._hooks = [
            register_module_forward_pre_hook(self._enters),
            register_module_forward_hook(self._leaves),
            register_optimizer_step_post_hook(lambda *_: self._stepped()),
        ]

    def stop(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if self._errors:
            write_errors(Path(self._plan.found), rank_of_process(), self._errors)

    def _stepped(self) -> None:
        self._done += 1
        self._modules.take()
        self._times.clear()

    def _enters(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        self._modules.enters(module, (), 0)
        if self._done != self._plan.step or not torch.is_grad_enabled():
            return None
        call = self._call_of_reference() if not any(module.children()) else None
        reference = self._reference
        if call is None or reference is None:
            self._before.append((None, 0.0))
            return None
        distances: list[float] = []

        def replaced(own: Any, other: Any) -> Any:
            if isinstance(own, torch.Tensor) and isinstance(other, TensorRef) and tuple(own.shape) == other.shape:
                values = reference.tensor(other)
                distances.append(apart(values, own.detach().cpu()))
                values = values.to(device=own.device, dtype=own.dtype)
                return _Replaced.apply(own, values) if own.requires_grad else values
            return own

        given = tuple(replaced(own, other) for own, other in zip(arguments, call.arguments, strict=False))
        self._before.append((call, max(distances, default=0.0)))
        return (*given, *arguments[len(given) :])

    def _leaves(self, module: torch.nn.Module, _arguments: Any, result: Any) -> None:
        self._modules.leaves(module, {}, None, 0)
        if self._done != self._plan.step or not self._before:
            return
        call, before = self._before.pop()
        if call is None or self._reference is None:
            return
        pairs = list(zip(_tensors(result), call.outputs, strict=False))
        own = [
            apart(self._reference.tensor(other), one.detach().cpu()) if tuple(one.shape) == other.shape else 1.0
            for one, other in pairs
        ]
        rounding = max((torch.finfo(one.dtype).eps / 2 for one, _ in pairs if one.is_floating_point()), default=0.0)
        path = plain_path(call.path)
        self._errors.append(ModuleError(path, type(module).__name__, before, max(own, default=0.0), rounding))

    def _call_of_reference(self) -> ModuleCall | None:
        """The reference's call of the module that is entered: that of the same path, and the same in order."""
        if self._reference is None:
            folder = Path(self._plan.reference)
            self._reference = read_step(step_file(folder, self._plan.step, rank_of_process()))
            calls = defaultdict(list)
            for call in self._reference.modules:
                calls[plain_path(call.path)].append(call)
            self._calls = dict(calls)
        path = plain_path(self._modules.path)
        number = self._times[path]
        self._times[path] += 1
        calls_of_path = self._calls.get(path, [])
        return calls_of_path[number] if number < len(calls_of_path) else None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one)
