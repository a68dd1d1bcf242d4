"""Padding taken out of a batch and put back, in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor


def index_first_axis(input: Tensor, indices: Tensor) -> Tensor:
    """The rows ``indices`` of ``input`` [rows, …]."""
    return input[indices]


def index_put_first_axis(values: Tensor, indices: Tensor, first_axis_dim: int) -> Tensor:
    """A tensor of ``first_axis_dim`` rows with ``values`` at ``indices`` and zeros elsewhere."""
    output = values.new_zeros(first_axis_dim, *values.shape[1:])
    return output.index_put((indices,), values)


def unpad_input(
    hidden_states: Tensor, attention_mask: Tensor, unused_mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor, int, Tensor]:
    """Tokens of [batch, sequence, …] where the mask is 1; their places, cu_seqlens, the longest, all used lengths."""
    kept = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = kept.sum(dim=-1, dtype=torch.int32)
    used = attention_mask.sum(dim=-1, dtype=torch.int32)
    indices = torch.nonzero(kept.flatten(), as_tuple=False).flatten()
    ends = torch.nn.functional.pad(torch.cumsum(lengths, dim=0, dtype=torch.int32), (1, 0))
    tokens = hidden_states.flatten(0, 1)[indices]
    return tokens, indices, ends, int(lengths.max().item()), used


def pad_input(hidden_states: Tensor, indices: Tensor, batch: int, seqlen: int) -> Tensor:
    """The tokens back in [batch, sequence, …], zeros between."""
    return index_put_first_axis(hidden_states, indices, batch * seqlen).unflatten(0, (batch, seqlen))
