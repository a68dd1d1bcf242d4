"""Layer-wise adaptive learning rates around any optimizer (https://arxiv.org/abs/1708.03888)."""

from __future__ import annotations

from typing import Any

import torch


class LARC:
    """Scales each gradient so that the optimizer's rate acts as min(lr, local) (``clip``), or as lr · local.

    local = trust_coefficient · ‖p‖ / (‖g‖ + λ‖p‖ + ε); weight decay λ is added to the gradient before.
    """

    def __init__(
        self,
        optimizer: Any,
        trust_coefficient: float = 0.02,
        clip: bool = True,
        eps: float = 1e-8,
    ) -> None:
        self.optim = optimizer
        self.trust_coefficient = trust_coefficient
        self.clip = clip
        self.eps = eps

    @property
    def state(self) -> Any:
        return self.optim.state

    @property
    def param_groups(self) -> Any:
        return self.optim.param_groups

    @param_groups.setter
    def param_groups(self, value: Any) -> None:
        self.optim.param_groups = value

    def __repr__(self) -> str:
        return repr(self.optim)

    def __getstate__(self) -> Any:
        return self.optim.__getstate__()

    def __setstate__(self, state: Any) -> None:
        self.optim.__setstate__(state)

    def state_dict(self) -> Any:
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: Any) -> None:
        self.optim.load_state_dict(state_dict)

    def zero_grad(self, *arguments: Any, **keywords: Any) -> None:
        self.optim.zero_grad(*arguments, **keywords)

    def add_param_group(self, param_group: Any) -> None:
        self.optim.add_param_group(param_group)

    def step(self) -> None:
        """One step of the optimizer, which sees no weight decay of its own."""
        groups = self.optim.param_groups
        decays = [group.get("weight_decay", 0) for group in groups]
        for group, decay in zip(groups, decays, strict=True):
            group["weight_decay"] = 0
            self._scale(group, decay)
        self.optim.step()
        for group, decay in zip(groups, decays, strict=True):
            group["weight_decay"] = decay

    @torch.no_grad()
    def _scale(self, group: Any, decay: float) -> None:
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None:
                continue
            size, slope = parameter.norm(), gradient.norm()
            local = self.trust_coefficient * size / (slope + size * decay + self.eps)
            factor = (local / group["lr"]).clamp(max=1.0) if self.clip else local
            fits = (size != 0) & (slope != 0)  # on the device: reading the norms would wait for each
            gradient.copy_(torch.where(fits, (gradient + decay * parameter) * factor, gradient))
