"""The loss scale: 2¹⁶ at first, halved at an overflow, doubled after 2,000 steps without one.

On a chip that saturates, torch_npu's check asks the chip's flag; it is cleared before the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor


class LossScaler:
    """``loss_scale`` is a number, or "dynamic"."""

    def __init__(
        self,
        loss_scale: float | str,
        init_scale: float = 2.0**16,
        scale_factor: float = 2.0,
        scale_window: int = 2000,
        min_loss_scale: float | None = None,
        max_loss_scale: float = 2.0**24,
    ) -> None:
        self.dynamic = loss_scale == "dynamic"
        self._loss_scale = min(max_loss_scale, init_scale) if self.dynamic else float(loss_scale)
        self._scale_factor = scale_factor
        self._scale_seq_len = scale_window
        self._min_loss_scale = min_loss_scale
        self._max_loss_scale = max_loss_scale
        self._unskipped = 0
        self._has_overflow = False
        self._found: dict[torch.device, Tensor] = {}

    def loss_scale(self) -> float:
        """The factor of the loss."""
        return self._loss_scale

    def clear_overflow_state(self) -> None:
        """Forget what was found."""
        self._found.clear()
        self._has_overflow = False

    @torch.no_grad()
    def unscale(self, gradients: Iterable[Tensor], scale: float | None = None) -> None:
        """Divide gradients by the scale, in place, and note on the device whether one is not finite."""
        kinds: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
        for gradient in gradients:
            numbers = gradient._values() if gradient.is_sparse else gradient
            kinds.setdefault((numbers.device, numbers.dtype), []).append(numbers)
        for (device, _), some in kinds.items():
            found = self._found.setdefault(device, torch.zeros(1, device=device))
            inverse = torch.full((1,), 1.0 / (self._loss_scale if scale is None else scale), device=device)
            torch._amp_foreach_non_finite_check_and_unscale_(some, found, inverse)

    def update_scale(self) -> bool:
        """Set the next scale; True where the step must be skipped. Waits for the device, once."""
        if self.dynamic and not self._has_overflow:
            self._has_overflow = self._overflowed()
        skip = self._has_overflow and self.dynamic
        if skip:
            lower = self._loss_scale / self._scale_factor
            self._loss_scale = max(self._min_loss_scale, lower) if self._min_loss_scale else lower
            self._unskipped = 0
        else:
            self._unskipped += 1
        if self._unskipped == self._scale_seq_len and self.dynamic:
            self._loss_scale = min(self._max_loss_scale, self._loss_scale * self._scale_factor)
            self._unskipped = 0
        return skip

    def _overflowed(self) -> bool:
        found = list(self._found.values())
        if not found:
            return False
        total = found[0].clone()
        for other in found[1:]:
            total += other.to(total.device)
        if _saturates(total.device) and dist.is_available() and dist.is_initialized():
            dist.all_reduce(total)  # gradients averaged over processes show no Inf, each chip only has its own flag
        return bool(total.item())


def clear_flag(device: torch.device) -> None:
    """Make a saturating chip forget earlier overflows; nothing elsewhere."""
    if _saturates(device):
        import torch_npu

        torch_npu.npu.utils.clear_npu_overflow_flag()


def _saturates(device: torch.device) -> bool:
    if device.type != "npu":
        return False
    import torch_npu

    return not torch_npu.npu.utils.is_support_inf_nan()
