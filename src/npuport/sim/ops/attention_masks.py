"""Which keys fused attention hides from which queries: the sparse modes.

Sources: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_fusion_attention.md (table of modes) and CANN's
page on sparseModeOptional (hicann/ops-transformer docs/context), which says that mode 7 has its band in the last
sequence that is not empty and mode 8 in the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

COMPRESSED = (2048, 2048)
COMPRESSED_PREFIX = (3072, 2048)
(
    MODE_DEFAULT,
    MODE_ALL,
    MODE_LEFT_UP,
    MODE_RIGHT_DOWN,
    MODE_BAND,
    MODE_PREFIX,
    MODE_PREFIX_COMPRESSED,
    MODE_RIGHT_DOWN_BAND,
    MODE_BAND_LEFT_UP,
) = range(9)
_FULL_MASK = (MODE_DEFAULT, MODE_ALL, MODE_PREFIX)


@dataclass(frozen=True)
class Sparsity:
    """A sparse mode with its numbers; `prefix` has one number for each batch (or sequence)."""

    mode: int = MODE_DEFAULT
    pre_tokens: int = 2147483647
    next_tokens: int = 2147483647
    prefix: tuple[int, ...] = ()


def for_sequence(sparsity: Sparsity, index: int, lengths: Sequence[tuple[int, int]]) -> Sparsity:
    """The sparsity of sequence `index` of a TND call whose sequences have `lengths` (queries, keys)."""
    mode = sparsity.mode
    filled = [i for i, (queries, keys) in enumerate(lengths) if queries and keys]
    if mode == MODE_RIGHT_DOWN_BAND:
        mode = MODE_BAND if filled and index == filled[-1] else MODE_RIGHT_DOWN
    elif mode == MODE_BAND_LEFT_UP:
        mode = MODE_BAND if filled and index == filled[0] else MODE_LEFT_UP
    return Sparsity(mode, sparsity.pre_tokens, sparsity.next_tokens, sparsity.prefix[index : index + 1])


def hidden_positions(mask: Tensor | None, queries: int, keys: int, sparsity: Sparsity) -> Tensor | None:
    """Bool tensor that broadcasts to [B, N, queries, keys], True where a key is hidden from a query; None hides
    nothing.

    Raises RuntimeError for a mask whose shape does not fit its sparse mode. Without a mask the mode is ignored (as on
    the device).
    """
    if mask is None:
        return None
    mode = sparsity.mode
    if mode in _FULL_MASK:
        if mask.shape[-2:] != (queries, keys):
            raise RuntimeError(
                f"npu_fusion_attention: with sparse_mode {mode} atten_mask must end in [{queries}, {keys}], "
                f"got {list(mask.shape)}"
            )
        return mask.bool()
    expected = COMPRESSED_PREFIX if mode == MODE_PREFIX_COMPRESSED else COMPRESSED
    if tuple(mask.shape[-2:]) != expected:
        raise RuntimeError(
            f"npu_fusion_attention: with sparse_mode {mode} atten_mask must be the compressed {list(expected)} mask, "
            f"got {list(mask.shape)}"
        )
    row, column = torch.arange(queries)[:, None], torch.arange(keys)[None, :]
    ahead = column - row if mode == MODE_LEFT_UP else column - row - (keys - queries)
    if mode == MODE_BAND:
        return (ahead > sparsity.next_tokens) | (ahead < -sparsity.pre_tokens)
    if mode in (MODE_LEFT_UP, MODE_RIGHT_DOWN):
        return ahead > 0
    return (ahead > 0) & (column >= torch.tensor(sparsity.prefix)[:, None, None, None])
