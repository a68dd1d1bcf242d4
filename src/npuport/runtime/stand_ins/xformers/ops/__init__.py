"""``xformers.ops``: attention over ``npu_fusion_attention``."""

from __future__ import annotations

from . import fmha
from .fmha import memory_efficient_attention
from .fmha.attn_bias import AttentionBias, BlockDiagonalMask, LowerTriangularMask

__all__ = ["AttentionBias", "BlockDiagonalMask", "LowerTriangularMask", "fmha", "memory_efficient_attention"]
