"""What Apex's optimizers have in common: gradients by dtype, a step that is the group's, ``set_grad_none``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor


class FusedOptimizer(torch.optim.Optimizer):
    """``set_grad_none``: zero_grad() drops the gradients, instead of filling them with zeros."""

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any], *, set_grad_none: bool) -> None:
        super().__init__(params, defaults)
        self.set_grad_none = set_grad_none

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        """Forget the gradients. Apex's own takes no argument; schedulers and trainers give torch's."""
        super().zero_grad(self.set_grad_none if set_to_none is None else set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step for all groups; the closure's loss, if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            self._step()
        return loss

    def _step(self) -> None:
        raise NotImplementedError

    def _by_dtype(self, group: dict[str, Any]) -> Iterator[list[Tensor]]:
        """The parameters of a group that have gradients, those of one dtype together, fp16 first."""
        kinds: dict[torch.dtype, list[Tensor]] = {torch.float16: [], torch.bfloat16: [], torch.float32: []}
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            name = type(self).__name__
            if parameter.grad.is_sparse:
                raise RuntimeError(f"{name} does not support sparse gradients, please consider SparseAdam instead")
            if parameter.dtype not in kinds:
                raise RuntimeError(f"{name} only supports float16, bfloat16 and float32, not {parameter.dtype}")
            kinds[parameter.dtype].append(parameter)
        yield from (parameters for parameters in kinds.values() if parameters)

    def _states(self, parameters: list[Tensor], *names: str, dtype: torch.dtype | None = None) -> list[list[Tensor]]:
        """The state tensors of these names, made of zeros where there are none yet."""
        for parameter in parameters:
            state = self.state[parameter]
            for name in names:
                if name not in state:
                    state[name] = torch.zeros_like(parameter, dtype=dtype or parameter.dtype)
        return [[self.state[parameter][name] for parameter in parameters] for name in names]


def gradients(parameters: list[Tensor]) -> list[Tensor]:
    """The gradients, of parameters that have one."""
    return [parameter.grad for parameter in parameters]


def flag_for(tensor: Tensor) -> Tensor:
    """A flag that an ``amp_C`` function may raise."""
    return torch.zeros(1, dtype=torch.int32, device=tensor.device)


def refuse_amsgrad(name: str, amsgrad: bool) -> None:
    """Raises RuntimeError, as Apex does."""
    if amsgrad:
        raise RuntimeError(f"{name} does not support the AMSGrad variant.")
