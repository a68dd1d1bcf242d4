"""FusedLAMB: Adam's update, scaled for each tensor by its size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from npuport.runtime.multi_tensor import multi_tensor_l2norm, multi_tensor_lamb

from ..multi_tensor_apply import multi_tensor_applier
from ._base import FusedOptimizer, flag_for, gradients, refuse_amsgrad


class FusedLAMB(FusedOptimizer):
    """LAMB with gradients clipped to ``max_grad_norm``, the norm of all groups together. Raises as FusedAdam does."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        adam_w_mode: bool = True,
        grad_averaging: bool = True,
        set_grad_none: bool = True,
        max_grad_norm: float = 1.0,
        use_nvlamb: bool = False,
    ) -> None:
        refuse_amsgrad("FusedLAMB", amsgrad)
        defaults = {
            "lr": lr,
            "bias_correction": bias_correction,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "grad_averaging": grad_averaging,
            "max_grad_norm": max_grad_norm,
        }
        super().__init__(params, defaults, set_grad_none=set_grad_none)
        self.adam_w_mode = int(adam_w_mode)
        self.use_nvlamb = use_nvlamb

    def _step(self) -> None:
        found = [gradients(parameters) for group in self.param_groups for parameters in self._by_dtype(group)]
        if not found:
            return
        norms = [multi_tensor_applier(multi_tensor_l2norm, flag_for(some[0]), [some])[0] for some in found]
        norm = torch.cat(norms).norm()
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            for parameters in self._by_dtype(group):
                multi_tensor_applier(
                    multi_tensor_lamb,
                    flag_for(parameters[0]),
                    [gradients(parameters), parameters, *self._states(parameters, "exp_avg", "exp_avg_sq")],
                    group["lr"],
                    *group["betas"],
                    group["eps"],
                    group["step"],
                    int(group["bias_correction"]),
                    group["weight_decay"],
                    int(group["grad_averaging"]),
                    self.adam_w_mode,
                    norm,
                    self.defaults["max_grad_norm"],
                    self.use_nvlamb,
                )
