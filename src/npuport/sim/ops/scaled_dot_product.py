"""`aten::scaled_dot_product_attention` as torch_npu routes it: to a fused operator when it can, else to PyTorch's math.

The conditions are those of op_plugin/ops/opapi/ScaledDotProductAttentionKernelNpuOpApi.cpp (torch 2.5 and later). Its
third way, fused attention for inference, asks for a subset of what the first accepts and is never reached on a chip
that has it.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from npuport.sim.ops import attention_masks as masks
from npuport.sim.ops.registration import AUTOGRAD, FORWARD, kernel

_MAX_HEADS = 2048
_MAX_WIDTH = 512
_ASCEND_910B1, _ASCEND_950 = 220, 260  # c10_npu::SocVersion (torch_npu/csrc/core/npu/NpuVariables.h)
_HIGH_PRECISION = 2
_ALL = 2147483647
_DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@kernel("aten::scaled_dot_product_attention", keys=(FORWARD, AUTOGRAD), lend=False)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    _check(query, key, value, attn_mask)
    if not _fits_fused(query, key, value, attn_mask):
        mask = _additive(attn_mask, query.dtype)
        output: Tensor = torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]
        return output
    if is_causal and attn_mask is not None:
        raise RuntimeError("The attn_mask should be none when is_causal is true")
    precise = _HIGH_PRECISION if not is_causal and query.size(2) > 1 and attn_mask is not None else 0
    fused = (
        torch.ops.npu.npu_fusion_attention_v3 if _soc_version() < _ASCEND_950 else torch.ops.npu.npu_fusion_attention
    )
    found: Tensor = fused(
        query,
        key,
        value,
        query.size(1),
        "BNSD",
        atten_mask=_hidden(query, key, attn_mask, is_causal),
        scale=1 / math.sqrt(query.size(-1)) if scale is None else scale,
        keep_prob=1 - dropout_p,
        pre_tockens=_ALL,
        next_tockens=0 if is_causal else _ALL,
        inner_precise=precise,
        sparse_mode=masks.MODE_LEFT_UP if is_causal else masks.MODE_DEFAULT,
    )[0]
    return found


def _soc_version() -> int:
    import torch_npu

    return int(torch_npu._C._npu_get_soc_version())


def _math_is_forced(query: Tensor, key: Tensor, value: Tensor) -> bool:
    import torch_npu

    if not torch_npu.npu.are_compatible_impl_enabled():
        return False
    only_math = torch.backends.cuda.math_sdp_enabled() and not torch.backends.cuda.flash_sdp_enabled()
    return only_math or max(t.size(-1) for t in (query, key, value)) > 256


def _fits_fused(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> bool:
    tensors = (query, key, value)
    if query.dtype not in _DTYPES or any(t.dim() != 4 for t in tensors):
        return False
    if query.dtype == torch.float32 and any(t.size(-1) % 4 for t in tensors):
        return False
    heads, key_heads = query.size(1), key.size(1)
    return (
        (attn_mask is None or attn_mask.dtype == torch.bool)
        and max(heads, key_heads) <= _MAX_HEADS
        and query.size(3) <= _MAX_WIDTH
        and key_heads > 0
        and heads >= key_heads
        and heads % key_heads == 0
        and _soc_version() >= _ASCEND_910B1
        and not _math_is_forced(*tensors)
    )


def _hidden(query: Tensor, key: Tensor, attn_mask: Tensor | None, is_causal: bool) -> Tensor | None:
    """The mask of the fused operator: True hides. Masks that only broadcast to [B, N, Sq, Skv] are expanded."""
    if is_causal:
        return _triangle(query.device)
    if attn_mask is None:
        return None
    full = (query.size(0), query.size(1), query.size(2), key.size(2))
    known = ((full[0], full[1]), (full[0], 1), (1, 1), ())
    fits = attn_mask.shape[-2:] == full[-2:] and tuple(attn_mask.shape[:-2]) in known
    return torch.logical_not(attn_mask if fits else attn_mask.expand(full))


@functools.cache
def _triangle(device: torch.device) -> Tensor:
    """The compressed causal mask. torch_npu makes a new one for every call; four million elements are slow on a CPU."""
    with torch.inference_mode(False):  # a mask made in inference mode could not be saved for a backward pass later
        return torch.ones(masks.COMPRESSED, dtype=torch.bool, device=device).triu(1)


def _additive(attn_mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    if attn_mask is None or attn_mask.dtype != torch.bool:
        return attn_mask
    return torch.zeros_like(attn_mask, dtype=dtype).masked_fill_(attn_mask.logical_not(), float("-inf"))


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    tensors = (query, key, value)
    if len({t.dtype for t in tensors}) > 1:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype} "
            f"key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if len({t.device for t in tensors}) > 1:
        raise RuntimeError(
            f"Expected query, key, and value to have the same device type, but got query.device: {query.device} "
            f"key.device: {key.device} and value.device: {value.device} instead."
        )
    if min(t.dim() for t in tensors) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.dim()} "
            f"key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if attn_mask is not None and attn_mask.dtype not in (torch.bool, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype} and  query.dtype: {query.dtype} instead."
        )
