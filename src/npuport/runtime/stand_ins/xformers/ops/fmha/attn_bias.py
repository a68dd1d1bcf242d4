"""The masks of ``xformers.ops.fmha.attn_bias`` that programs train with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar

import torch
from torch import Tensor


class AttentionBias:
    """A mask by its rule. ``causal`` says where its diagonal starts or ends."""

    causal: ClassVar[Any] = ""
    bias: Tensor | None = None


class LowerTriangularMask(AttentionBias):
    """Causal; the first query sees the first key."""

    causal = "top left"

    def __init__(self, *tensor_args: Any, **tensor_kwargs: Any) -> None:
        """Older versions took what a tensor takes."""

    def add_bias(self, bias: Tensor) -> LowerTriangularMaskWithTensorBias:
        """The same mask with a bias [batch or 1, heads, queries, keys]."""
        return LowerTriangularMaskWithTensorBias(bias)


class LowerTriangularMaskWithTensorBias(LowerTriangularMask):
    """Causal, with a bias."""

    def __init__(self, bias: Tensor) -> None:
        super().__init__()
        self.bias = bias


class LowerTriangularFromBottomRightMask(AttentionBias):
    """Causal; the last query sees the last key."""

    causal = "bottom right"


@dataclass
class _SeqLenInfo:
    """Where sequences start, and where the last one ends."""

    seqstart_py: list[int]

    @classmethod
    def from_seqlens(cls, seqlens: Sequence[int]) -> _SeqLenInfo:
        return cls([0, *accumulate(seqlens)])

    def split(self, x: Tensor) -> list[Tensor]:
        """The sequences of [1, tokens, …], each [1, length, …]."""
        lengths = [b - a for a, b in zip(self.seqstart_py, self.seqstart_py[1:], strict=False)]
        return list(x.split(lengths, dim=1))


@dataclass
class BlockDiagonalMask(AttentionBias):
    """Several sequences one after the other in a batch of one; each sees itself alone."""

    q_seqinfo: _SeqLenInfo
    k_seqinfo: _SeqLenInfo
    _batch_sizes: list[int] | None = field(default=None, repr=False)

    @classmethod
    def from_seqlens(
        cls, q_seqlen: Sequence[int], kv_seqlen: Sequence[int] | None = None, **_: Any
    ) -> BlockDiagonalMask:
        """From the lengths of the sequences."""
        queries = _SeqLenInfo.from_seqlens(q_seqlen)
        return cls(queries, queries if kv_seqlen is None else _SeqLenInfo.from_seqlens(kv_seqlen))

    @classmethod
    def from_tensor_list(cls, tensors: Sequence[Tensor]) -> tuple[BlockDiagonalMask, Tensor]:
        """The mask and the tokens [1, all tokens, …] of batches [batch, length, …]."""
        lengths = [tensor.shape[1] for tensor in tensors for _ in range(tensor.shape[0])]
        mask = cls.from_seqlens(lengths)
        mask._batch_sizes = [tensor.shape[0] for tensor in tensors]
        return mask, torch.cat([tensor.reshape(1, -1, *tensor.shape[2:]) for tensor in tensors], dim=1)

    def split(self, tensor: Tensor) -> list[Tensor]:
        """What ``from_tensor_list`` joined, apart again."""
        parts = self.q_seqinfo.split(tensor)
        if self._batch_sizes is None:
            return parts
        together, at = [], 0
        for size in self._batch_sizes:
            together.append(torch.cat(parts[at : at + size], dim=0))
            at += size
        return together

    def make_causal(self) -> BlockDiagonalCausalMask:
        """The same sequences, each causal."""
        return BlockDiagonalCausalMask(self.q_seqinfo, self.k_seqinfo, self._batch_sizes)

    def make_causal_from_bottomright(self) -> BlockDiagonalCausalFromBottomRightMask:
        """The same sequences, each causal from the bottom right."""
        return BlockDiagonalCausalFromBottomRightMask(self.q_seqinfo, self.k_seqinfo, self._batch_sizes)


class BlockDiagonalCausalMask(BlockDiagonalMask):
    """Each sequence causal; its first query sees its first key."""

    causal = "top left"


class BlockDiagonalCausalFromBottomRightMask(BlockDiagonalMask):
    """Each sequence causal; its last query sees its last key."""

    causal = "bottom right"
