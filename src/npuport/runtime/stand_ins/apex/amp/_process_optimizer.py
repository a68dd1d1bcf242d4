"""What amp adds to an optimizer: master weights, and gradients that are unscaled before they are added to others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

import torch
from torch import Tensor

from .scaler import LossScaler

_LOWER = (torch.float16, torch.bfloat16)


class Stash:
    """``optimizer._amp_stash``. Master weights come into being at the first use, after checkpoints were loaded."""

    def __init__(self, optimizer: Any, *, master_weights: bool) -> None:
        self.optimizer = optimizer
        self.master_weights = master_weights
        self.lazy_init_called = False
        self.already_patched = False
        self.params_have_scaled_gradients = False
        self.all_fp16_params: list[Tensor] = []
        self.all_fp32_from_fp16_params: list[Tensor] = []
        self._own: list[Tensor] = []  # parameters that are their own masters
        self._earlier: list[Tensor | None] = []  # their gradients from before this backward pass

    @property
    def all_fp32_from_fp32_params(self) -> list[Tensor]:
        """The parameters that need no master weight."""
        return self._own

    def initialize(self) -> None:
        """Take in the optimizer's parameters, once."""
        if self.lazy_init_called:
            return
        self.lazy_init_called = True
        for group in self.optimizer.param_groups:
            group["params"] = self.adopt(group["params"])
        if self.master_weights:
            self.optimizer.load_state_dict(self.optimizer.state_dict())  # state in the dtype of the masters

    def adopt(self, parameters: Iterable[Tensor]) -> list[Tensor]:
        """What the optimizer steps in the place of these parameters."""
        adopted = []
        for parameter in parameters:
            master = parameter
            if self.master_weights and parameter.requires_grad and parameter.dtype in _LOWER:
                master = parameter.detach().clone().float().requires_grad_()
                self.all_fp16_params.append(parameter)
                self.all_fp32_from_fp16_params.append(master)
                if parameter in self.optimizer.state:
                    self.optimizer.state[master] = self.optimizer.state.pop(parameter)
            else:
                self._own.append(parameter)
                self._earlier.append(None)
            adopted.append(master)
        return adopted

    def prepare_backward(self) -> None:
        """Put earlier gradients aside: they are unscaled already."""
        self.initialize()
        for parameter in self.all_fp16_params:
            parameter.grad = None
        for place, parameter in enumerate(self._own):
            self._earlier[place] = parameter.grad
            parameter.grad = None

    @torch.no_grad()
    def finish_backward(self, scaler: LossScaler) -> None:
        """Unscale the new gradients, those of fp16 parameters as float32, and add them to the earlier ones."""
        self.initialize()
        fresh: list[Tensor] = []
        sums: list[tuple[Tensor, Tensor | None]] = []
        for parameter, master in zip(self.all_fp16_params, self.all_fp32_from_fp16_params, strict=True):
            if parameter.grad is not None:
                fresh.append(parameter.grad.float())
                sums.append((master, master.grad))
        for parameter, earlier in zip(self._own, self._earlier, strict=True):
            if parameter.grad is not None:
                fresh.append(parameter.grad.coalesce() if parameter.grad.is_sparse else parameter.grad)
                sums.append((parameter, earlier))
            elif earlier is not None:
                parameter.grad = earlier
        if scaler.dynamic or scaler.loss_scale() != 1.0:
            scaler.unscale(fresh)
        for gradient, (target, earlier) in zip(fresh, sums, strict=True):
            target.grad = gradient if earlier is None else earlier.add_(gradient)
        self._earlier = [None] * len(self._own)

    @torch.no_grad()
    def masters_to_model(self) -> None:
        """The master weights go into the model."""
        for parameter, master in zip(self.all_fp16_params, self.all_fp32_from_fp16_params, strict=True):
            parameter.copy_(master)

    def forget_master_gradients(self) -> None:
        """``model.zero_grad()`` does not reach them."""
        for master in self.all_fp32_from_fp16_params:
            master.grad = None


def replace_method(optimizer: Any, name: str, function: Callable[..., Any]) -> None:
    """``optimizer.name(…)`` calls ``function(…)`` from now on; schedulers of torch expect a method that is bound."""

    def method(_self: Any, *arguments: Any, **keywords: Any) -> Any:
        return function(*arguments, **keywords)

    setattr(optimizer, name, MethodType(method, optimizer))


def process_optimizer(optimizer: Any, *, master_weights: bool) -> None:
    """Change ``optimizer`` in place. Raises RuntimeError where that was done before."""
    if hasattr(optimizer, "_amp_stash"):
        raise RuntimeError("A given optimizer should only be passed through amp.initialize once.")
    stash = optimizer._amp_stash = Stash(optimizer, master_weights=master_weights)
    optimizer._amp_lazy_init = stash.initialize
    add_param_group = optimizer.add_param_group

    def add(new_group: dict[str, Any]) -> None:
        stash.initialize()
        parameters = new_group["params"]
        new_group["params"] = stash.adopt([parameters] if isinstance(parameters, Tensor) else parameters)
        add_param_group(new_group)

    replace_method(optimizer, "add_param_group", add)
    if master_weights:
        _step_masters(optimizer, stash)


def _step_masters(optimizer: Any, stash: Stash) -> None:
    step = optimizer.step
    optimizer._master_params_to_model_params = stash.masters_to_model

    def new_step(closure: Any = None) -> Any:
        if closure is not None:
            raise RuntimeError("Currently, Amp does not support closure use with optimizers.")
        result = step()
        stash.masters_to_model()
        stash.forget_master_gradients()
        return result

    def zero_grad(set_to_none: bool = False) -> None:  # noqa: ARG001 - torch's signature
        stash.initialize()
        for parameter in (*stash.all_fp16_params, *stash.all_fp32_from_fp32_params):
            if parameter.grad is not None:
                parameter.grad.detach_().zero_()
        stash.forget_master_gradients()

    replace_method(optimizer, "step", new_step)
    replace_method(optimizer, "zero_grad", zero_grad)
