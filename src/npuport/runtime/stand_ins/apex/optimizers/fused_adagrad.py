"""FusedAdagrad: torch's Adagrad, with decoupled weight decay on request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from npuport.runtime.multi_tensor import multi_tensor_adagrad

from ..multi_tensor_apply import multi_tensor_applier
from ._base import FusedOptimizer, flag_for, gradients


class FusedAdagrad(FusedOptimizer):
    """h ← h + g², p ← p - lr·g / (√h + ε); weights decay in the gradient, or as in AdamW (``adagrad_w_mode``)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
        set_grad_none: bool = True,
        adagrad_w_mode: bool = False,
    ) -> None:
        defaults = {"lr": lr, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults, set_grad_none=set_grad_none)
        self.adagrad_w_mode = int(adagrad_w_mode)

    def _step(self) -> None:
        for group in self.param_groups:
            for parameters in self._by_dtype(group):
                multi_tensor_applier(
                    multi_tensor_adagrad,
                    flag_for(parameters[0]),
                    [gradients(parameters), parameters, *self._states(parameters, "sum")],
                    group["lr"],
                    group["eps"],
                    self.adagrad_w_mode,
                    group["weight_decay"],
                )
