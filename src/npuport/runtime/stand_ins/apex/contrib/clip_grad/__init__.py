"""Clipping of gradients by their norm, as PyTorch does it."""

from __future__ import annotations

from torch.nn.utils import clip_grad_norm_

__all__ = ["clip_grad_norm_"]
