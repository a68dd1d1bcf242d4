"""The position bias `pse` of fused attention, brought to a shape that broadcasts to [B, N, Sq, Skv].

Sources: Ascend/op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_fusion_attention.md (shapes, compression to the
last 1024 rows), Ascend/MindSpeed docs/zh/ops/fusion_attention.md (pse_type 2 and 3, start indices) and CANN's kernel
(hicann/ops-transformer common/include/kernel/pse.h).
"""

from __future__ import annotations

import torch
from torch import Tensor

from npuport.sim.ops.precision import wide
from npuport.sim.ops.unavailable import NoReferenceError

OUTER_MUL_ADD, OUTER_ADD_MUL, INNER_ALIBI, INNER_ALIBI_SQRT = range(4)
COMPRESSED_ROWS = 1024


def alibi(slopes: Tensor, queries: int, keys: int, q_start: int, kv_start: int, square_root: bool) -> Tensor:
    """-slope·|distance|, or -slope·√|distance|, for slopes [N] or [B, N].

    The distance of query i and key j is (j + kv_start) - (i + q_start).
    """
    row, column = torch.arange(queries)[:, None], torch.arange(keys)[None, :]
    distance = wide((column + kv_start - row - q_start).abs().float())
    slopes = wide(slopes)[..., None, None]
    bias = -slopes * (distance.sqrt() if square_root else distance)
    return bias if bias.dim() == 4 else bias[None]


def expand_last_rows(compressed: Tensor, rows: int) -> Tensor:
    """The whole [B, N, rows, columns] bias behind its last 1024 rows; above the diagonal, which the causal modes hide,
    it is 0.

    The rows that were left out are read along the diagonals of those that were kept. Raises NoReferenceError when the
    bias is not constant along its diagonals, since the device then reads values that depend on its tiling.
    """
    kept, columns = compressed.shape[-2:]
    row, column = torch.arange(rows)[:, None], torch.arange(columns)[None, :]
    first = columns - kept  # the row of the whole square bias with which the kept ones start
    kept_lower = (torch.arange(kept)[:, None] + first) >= column
    along = compressed[..., 1:, 1:] == compressed[..., :-1, :-1]
    if not bool((along | ~kept_lower[..., 1:, 1:]).all()):
        raise NoReferenceError("npu::npu_fusion_attention", "compressed pse that is not constant along its diagonals")
    distance = (row - column).clamp(min=0)
    kept_row, kept_column = (distance - first).clamp(min=0), (first - distance).clamp(min=0)
    return torch.where(row >= column, compressed[..., kept_row, kept_column], 0)
