"""FusedNovoGrad: gradients divided by a running norm of the whole tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from npuport.runtime.multi_tensor import multi_tensor_novograd

from ..multi_tensor_apply import multi_tensor_applier
from ._base import FusedOptimizer, flag_for, gradients, refuse_amsgrad

_NORMS = {0: float("inf"), 2: 2.0}


class FusedNovoGrad(FusedOptimizer):
    """NovoGrad; the running norms stand in the group as ``exp_avg_sq``, those of fp16 first. Raises as FusedAdam."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        reg_inside_moment: bool = False,
        grad_averaging: bool = True,
        norm_type: int = 2,
        init_zero: bool = False,
        set_grad_none: bool = True,
    ) -> None:
        refuse_amsgrad("FusedNovoGrad", amsgrad)
        if norm_type not in _NORMS:
            raise RuntimeError("FusedNovoGrad only supports the l2 (2) and inf (0) norm now.")
        defaults = {
            "lr": lr,
            "bias_correction": bias_correction,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "grad_averaging": grad_averaging,
            "norm_type": norm_type,
            "init_zero": init_zero,
        }
        super().__init__(params, defaults, set_grad_none=set_grad_none)
        self.moment_mode = 0 if reg_inside_moment else 1

    def _step(self) -> None:
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            kinds = list(self._by_dtype(group))
            if "exp_avg_sq" not in group:
                group["exp_avg_sq"] = [self._first_norms(group, parameters) for parameters in kinds]
            group["exp_avg_sq"] = [
                norms.to(parameters[0].device) for norms, parameters in zip(group["exp_avg_sq"], kinds, strict=True)
            ]
            for norms, parameters in zip(group["exp_avg_sq"], kinds, strict=True):
                multi_tensor_applier(
                    multi_tensor_novograd,
                    flag_for(parameters[0]),
                    [gradients(parameters), parameters, *self._states(parameters, "exp_avg")],
                    norms,
                    group["lr"],
                    *group["betas"],
                    group["eps"],
                    group["step"],
                    int(group["bias_correction"]),
                    group["weight_decay"],
                    int(group["grad_averaging"]),
                    self.moment_mode,
                    group["norm_type"],
                )

    def _first_norms(self, group: dict[str, Any], parameters: list[Tensor]) -> Tensor:
        """[parameters]: zeros, or the norms of the first gradients, with which the first average changes nothing."""
        if group["init_zero"]:
            return torch.zeros(len(parameters), device=parameters[0].device)
        return torch.stack([g.float().norm(_NORMS[group["norm_type"]]) for g in gradients(parameters)])
