"""Which module runs, and what the tensors of a model and of its optimizers are called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from npuport.precision.operators.calls import SHARD, ModuleCall


class Modules:
    """The modules that are running, known by their paths from the first module that is called and holds them, which is
    ""."""

    def __init__(self) -> None:
        self.calls: list[ModuleCall] = []
        self._running: list[tuple[str, int, tuple[Any, ...], int]] = []  # path, place in calls, arguments, first call
        self._paths: dict[int, str] = {}
        self._roots: dict[int, torch.nn.Module] = {}

    @property
    def path(self) -> str:
        """The path of the module that is running; "" outside of all."""
        return self._running[-1][0] if self._running else ""

    def enters(self, module: torch.nn.Module, arguments: tuple[Any, ...], next_call: int) -> None:
        path = self._path_of(module)
        # Its place is taken now, so that modules are in the order in which they were entered.
        self.calls.append(ModuleCall(path, type(module).__name__, "forward", arguments, {}, None, next_call, -1))
        self._running.append((path, len(self.calls) - 1, arguments, next_call))

    def leaves(self, module: torch.nn.Module, keywords: dict[str, Any], result: Any, next_call: int) -> None:
        if self._running:
            path, place, arguments, first = self._running.pop()
            self.calls[place] = ModuleCall(
                path, type(module).__name__, "forward", arguments, keywords, result, first, next_call - 1
            )

    def take(self) -> list[ModuleCall]:
        """The calls until now; the next step begins."""
        taken, self.calls, self._running = self.calls, [], []
        return taken

    def names(self) -> Iterator[tuple[torch.Tensor, str]]:
        """The parameters, their gradients, and the buffers of the models that ran."""
        for model in self._roots.values():
            for path, parameter in model.named_parameters():
                shard = SHARD if _is_shard(parameter) else ""
                yield parameter, f"{shard}parameter {path}"
                if parameter.grad is not None:
                    yield parameter.grad, f"{shard}gradient of {path}"
            for path, buffer in model.named_buffers():
                yield buffer, f"buffer {path}"

    def names_of_state(self, optimizer: torch.optim.Optimizer) -> Iterator[tuple[torch.Tensor, str]]:
        """What an optimizer keeps for each parameter."""
        paths = {id(one): path for model in self._roots.values() for path, one in model.named_parameters()}
        for parameter, state in optimizer.state.items():
            path = paths.get(id(parameter), "an unknown parameter")
            for name, value in state.items():
                if isinstance(value, torch.Tensor):
                    yield value, f"{name} of {path}"

    def _path_of(self, module: torch.nn.Module) -> str:
        if id(module) not in self._paths:
            self._roots[id(module)] = module
            self._paths.update({id(one): path for path, one in module.named_modules()})
        return self._paths[id(module)]


def _is_shard(tensor: torch.Tensor) -> bool:
    """Whether this rank has a part of a DTensor, as under FSDP."""
    placements = getattr(tensor, "placements", ())
    return any(not one.is_replicate() and not one.is_partial() for one in placements)
