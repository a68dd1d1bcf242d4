"""Attention of the CUDA libraries over ``torch_npu.npu_fusion_attention``.

Source of layouts, sparse modes and argument rules: op-plugin's document on torch_npu.npu_fusion_attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

import torch
import torch_npu
from torch import Tensor

Causal = Literal["", "top left", "bottom right"]
_SPARSE_MODE = {"": 0, "top left": 2, "bottom right": 3}
_BAND = 4
_FAR = 2147483647
_COMPRESSED = 2048  # rows and columns of the mask that stands for a causal mask of any size


@cache
def _causal_mask(device: torch.device) -> Tensor:
    """True where a key comes after the query, which the operator leaves out."""
    return torch.ones(_COMPRESSED, _COMPRESSED, dtype=torch.bool, device=device).triu(1)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    layout: str,
    scale: float | None = None,
    dropout: float = 0.0,
    causal: Causal = "",
    window: tuple[int, int] = (-1, -1),
    bias: Tensor | None = None,
    lengths: tuple[Sequence[int], Sequence[int]] | None = None,
) -> Tensor:
    """softmax(scale·QKᵀ + bias)·V, laid out as BSND [batch, sequence, heads, size] or TND [tokens, heads, size].

    ``window`` is (left, right) around the diagonal that ends bottom right, -1 for no limit. ``bias`` is [batch or 1,
    heads, queries, keys]. ``lengths`` are the ends of the sequences in TND, for queries and keys, on the host.
    """
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    mode, before, after, mask = _SPARSE_MODE[causal], _FAR, _FAR, _causal_mask(query.device) if causal else None
    if window != (-1, -1):
        left, right = window[0], 0 if causal else window[1]
        mode, mask = _BAND, _causal_mask(query.device)
        before, after = (_FAR if side < 0 else side for side in (left, right))
    found: Tensor = torch_npu.npu_fusion_attention(
        query,
        key,
        value,
        query.shape[-2],
        layout,
        pse=None if bias is None else (bias / factor).to(query.dtype),  # which the operator adds before it scales
        atten_mask=mask,
        scale=factor,
        keep_prob=1.0 - dropout,
        pre_tockens=before,
        next_tockens=after,
        sparse_mode=mode,
        actual_seq_qlen=None if lengths is None else list(lengths[0]),
        actual_seq_kvlen=None if lengths is None else list(lengths[1]),
    )[0]
    return found
