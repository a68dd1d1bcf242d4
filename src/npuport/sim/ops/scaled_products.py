"""Products per group of float8 matrices with scales: `torch._scaled_grouped_mm` and its second version.

Scales of float32 belong to rows and columns, those of float8_e8m0fnu to blocks of 32 along the contraction (in pairs:
[M, K/64, 2] and [G, K/64, N, 2]). Shapes, dtypes and refusals: op-plugin's tests
test/test_base_ops/test_npu_scaled_grouped_mm.py and test_npu_scaled_grouped_mm_v2.py; the product is PyTorch's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from npuport.sim.ops.registration import kernel
from npuport.sim.ops.unavailable import NoReferenceError

_BLOCK, _MULTIPLE = 32, 16
_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
_SCALES = (torch.float32, torch.float8_e8m0fnu)


@kernel("aten::_scaled_grouped_mm")
def scaled_grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """(a_g · scale_a)·(b_g · scale_b) for each group g, bfloat16: rows of a 2D `mat_a` [M, K] are cut at `offs`
    (the ends, [G]), `mat_b` is [G, K, N]; a 3D `mat_a` [G, M, K] has a group per matrix.
    """
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        _require(matrix.dim() in (2, 3), f"{name} dimension must be 2D or 3D, got {matrix.dim()}D")
    _require(bias is None, "NPU _scaled_grouped_mm does not support bias yet")
    _require(scale_result is None, "NPU _scaled_grouped_mm does not support scale_result yet")
    only = "_scaled_grouped_mm on NPU only supports BF16 output type"
    return _product(mat_a, mat_b, scale_a, scale_b, offs, out_dtype, only)


@kernel("aten::_scaled_grouped_mm_v2")
def scaled_grouped_mm_v2(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Sequence[Tensor],
    recipe_a: Sequence[int],
    swizzle_a: Sequence[int],
    scale_b: Sequence[Tensor],
    recipe_b: Sequence[int],
    swizzle_b: Sequence[int],
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """The same with scales in lists of one, by row; swizzled scales have no reference."""
    if mat_a.dtype not in _FLOAT8 or mat_b.dtype not in _FLOAT8:
        raise ValueError("failed to find valid scaled gemm implementation")
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        _require(matrix.dim() in (2, 3), f"Input tensor {name} must be 2D or 3D, got {matrix.dim()}D")
    _require(bias is None, "NPU _scaled_grouped_mm_v2 does not support bias parameter")
    if len(scale_a) != 1 or len(scale_b) != 1 or any((*recipe_a, *recipe_b, *swizzle_a, *swizzle_b)):
        raise NoReferenceError("aten::_scaled_grouped_mm_v2", "other scales than one by row, not swizzled")
    only = "NPU _scaled_grouped_mm_v2 only supports BF16 output type"
    return _product(mat_a, mat_b, scale_a[0], scale_b[0], offs, out_dtype, only)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _check(mat_a: Tensor, mat_b: Tensor, scale_a: Tensor, scale_b: Tensor, offs: Tensor | None) -> None:
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        _require(scale.dtype in _SCALES, f"{name} must be float32 or float8_e8m0fnu, got {scale.dtype}")
        flat = scale.dtype != torch.float32 or scale.dim() in (1, 2)
        _require(flat, f"{name} dimension must be 1D or 2D for fp8, got {scale.dim()}D")
    same = mat_a.size(-1) == mat_b.size(-2)
    _require(same, f"contraction dimension mismatch between mat_a and mat_b: {mat_a.size(-1)} and {mat_b.size(-2)}")
    _require(mat_a.size(-1) % _MULTIPLE == 0, f"mat_a trailing dimension must be multiple of {_MULTIPLE}")
    whole = mat_b.size(-2) % _MULTIPLE == 0 and mat_b.size(-1) % _MULTIPLE == 0
    _require(whole, f"mat_b dimensions must be multiple of {_MULTIPLE}")
    _require(offs is not None or (mat_a.dim() == 3 and mat_b.dim() == 3), "offsets required when using 2D input tensor")
    if offs is not None:
        _require(offs.dim() == 1, "offsets tensor must be 1D")
        _require(offs.dtype == torch.int32, "offsets data type must be int32")


def _product(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    offs: Tensor | None,
    out_dtype: torch.dtype | None,
    wrong_dtype: str,
) -> Tensor:
    _check(mat_a, mat_b, scale_a, scale_b, offs)
    _require(out_dtype in (None, torch.bfloat16), wrong_dtype)
    single = mat_b.dim() == 2 or (mat_b.size(0) == 1 and mat_a.dim() == 3 and mat_a.size(0) > 1)
    _require(not single, "K_SPLIT (group_type=2) is not supported yet")
    left, right = _scaled_rows(mat_a, scale_a), _scaled_columns(mat_b, scale_b)
    if mat_a.dim() == 3:
        return torch.bmm(left, right).to(torch.bfloat16)
    assert offs is not None
    product = left.new_zeros(left.size(0), right.size(-1))
    for matrix, start, end in zip(right, [0, *offs.tolist()], offs.tolist(), strict=False):
        product[start:end] = left[start:end] @ matrix
    return product.to(torch.bfloat16)


def _scaled_rows(matrix: Tensor, scale: Tensor) -> Tensor:
    """float32 [..., M, K]."""
    if scale.dtype == torch.float32:
        return matrix.float() * scale.unsqueeze(-1)
    return matrix.float() * scale.float().flatten(-2).repeat_interleave(_BLOCK, dim=-1)


def _scaled_columns(matrix: Tensor, scale: Tensor) -> Tensor:
    """float32 [G, K, N]."""
    if scale.dtype == torch.float32:
        return matrix.float() * scale.reshape(matrix.size(0), 1, matrix.size(-1))
    blocks = scale.float().transpose(-1, -2).reshape(matrix.size(0), -1, matrix.size(-1))
    return matrix.float() * blocks.repeat_interleave(_BLOCK, dim=-2)
