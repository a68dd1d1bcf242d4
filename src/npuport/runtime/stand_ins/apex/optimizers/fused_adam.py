"""FusedAdam: AdamW, unless ``adam_w_mode=False`` asks for Adam with L2 regularisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from npuport.runtime.multi_tensor import multi_tensor_adam

from ..multi_tensor_apply import multi_tensor_applier
from ._base import FusedOptimizer, flag_for, gradients, refuse_amsgrad


class FusedAdam(FusedOptimizer):
    """p ← p - lr·(m̂ / (√v̂ + ε) + λp), or with λp in the gradient where ``adam_w_mode`` is False.

    Averages are float32. ``capturable`` changes where Apex counts, and nothing here.

    Raises:
        RuntimeError: for ``amsgrad``, as Apex.
        NotImplementedError: for ``master_weights``.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        adam_w_mode: bool = True,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        set_grad_none: bool = True,
        capturable: bool = False,
        master_weights: bool = False,
    ) -> None:
        refuse_amsgrad("FusedAdam", amsgrad)
        if master_weights:
            raise NotImplementedError("npuport's stand-in for apex has no FusedAdam(master_weights=True)")
        defaults = {
            "lr": lr,
            "bias_correction": bias_correction,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
        }
        super().__init__(params, defaults, set_grad_none=set_grad_none)
        self.adam_w_mode = int(adam_w_mode)
        self.capturable = capturable

    def step(
        self,
        closure: Callable[[], Any] | None = None,
        grads: Any = None,
        output_params: Any = None,
        scale: Any = None,
        grad_norms: Any = None,
    ) -> Any:
        """One step. The other arguments are those of an Apex long gone, which Apex refuses too."""
        if any(given is not None for given in (grads, output_params, scale, grad_norms)):
            raise RuntimeError("FusedAdam takes no grads, output_params, scale or grad_norms: use it as torch's Adam")
        return super().step(closure)

    def _step(self) -> None:
        for group in self.param_groups:
            if not group["params"]:
                continue
            group["step"] = group.get("step", 0) + 1
            for parameters in self._by_dtype(group):
                states = self._states(parameters, "exp_avg", "exp_avg_sq", dtype=torch.float32)
                multi_tensor_applier(
                    multi_tensor_adam,
                    flag_for(parameters[0]),
                    [gradients(parameters), parameters, *states],
                    group["lr"],
                    *group["betas"],
                    group["eps"],
                    group["step"],
                    self.adam_w_mode,
                    int(group["bias_correction"]),
                    group["weight_decay"],
                )
