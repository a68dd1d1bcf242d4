"""FusedSGD: torch's SGD, with weight decay after the momentum on request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from npuport.runtime.multi_tensor import multi_tensor_sgd

from ..multi_tensor_apply import multi_tensor_applier
from ._base import FusedOptimizer, flag_for, gradients


class FusedSGD(FusedOptimizer):
    """v ← μv + (1-dampening)·g, p ← p - lr·v; the first v is g.

    ``materialize_master_grads`` says where Apex's amp keeps gradients; here they are always those of the master
    weights, which gives the same parameters.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        wd_after_momentum: bool = False,
        materialize_master_grads: bool = True,
        set_grad_none: bool = False,
    ) -> None:
        for name, value in (("learning rate", lr), ("momentum value", momentum), ("weight_decay value", weight_decay)):
            if value < 0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(params, defaults, set_grad_none=set_grad_none)
        self.wd_after_momentum = wd_after_momentum
        self.materialize_master_grads = materialize_master_grads

    def _step(self) -> None:
        for group in self.param_groups:
            for parameters in self._by_dtype(group):
                known = [parameter for parameter in parameters if "momentum_buffer" in self.state[parameter]]
                fresh = [parameter for parameter in parameters if "momentum_buffer" not in self.state[parameter]]
                for some, first_run in ((known, False), (fresh, True)):
                    if some:
                        self._update(group, some, first_run=first_run)

    def _update(self, group: dict[str, Any], parameters: list[Any], *, first_run: bool) -> None:
        buffers = self._states(parameters, "momentum_buffer")
        multi_tensor_applier(
            multi_tensor_sgd,
            flag_for(parameters[0]),
            [gradients(parameters), parameters, *buffers],
            group["weight_decay"],
            group["momentum"],
            group["dampening"],
            group["lr"],
            group["nesterov"],
            first_run,
            self.wd_after_momentum,
        )
