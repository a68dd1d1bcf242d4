"""flash-attn's functions for training.

Shapes are [batch, sequence, heads, size], and with variable lengths [tokens, heads, size] and cu_seqlens [batch + 1].
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from npuport.runtime.fused_attention import attend


def _refuse(softcap: float, alibi_slopes: Tensor | None, return_attn_probs: bool, block_table: Any = None) -> None:
    """Raise NotImplementedError for what npu_fusion_attention cannot do."""
    given = {
        "softcap": softcap != 0.0,
        "alibi_slopes": alibi_slopes is not None,
        "return_attn_probs": return_attn_probs,
        "block_table": block_table is not None,
    }
    asked = [name for name, used in given.items() if used]
    if asked:
        raise NotImplementedError(
            f"npuport's stand-in for flash_attn does not have {', '.join(asked)}: npu_fusion_attention has none"
        )


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,  # noqa: ARG001 - torch.use_deterministic_algorithms decides on an NPU
    return_attn_probs: bool = False,
) -> Tensor:
    """Attention over whole sequences."""
    _refuse(softcap, alibi_slopes, return_attn_probs)
    return attend(
        q,
        k,
        v,
        layout="BSND",
        scale=softmax_scale,
        dropout=dropout_p,
        causal="bottom right" if causal else "",
        window=(window_size[0], window_size[1]),  # a list in some programs
    )


def flash_attn_qkvpacked_func(qkv: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
    """``qkv`` is [batch, sequence, 3, heads, size]."""
    q, k, v = qkv.unbind(2)
    return flash_attn_func(q, k, v, *arguments, **keywords)


def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
    """``kv`` is [batch, sequence, 2, heads, size]."""
    k, v = kv.unbind(2)
    return flash_attn_func(q, k, v, *arguments, **keywords)


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,  # noqa: ARG001 - follows from the lengths
    max_seqlen_k: int,  # noqa: ARG001
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,  # noqa: ARG001
    return_attn_probs: bool = False,
    block_table: Tensor | None = None,
) -> Tensor:
    """Attention over sequences one after the other. Lengths on the device are read, which waits for it."""
    _refuse(softcap, alibi_slopes, return_attn_probs, block_table)
    return attend(
        q,
        k,
        v,
        layout="TND",
        scale=softmax_scale,
        dropout=dropout_p,
        causal="bottom right" if causal else "",
        window=(window_size[0], window_size[1]),
        lengths=(cu_seqlens_q[1:].tolist(), cu_seqlens_k[1:].tolist()),
    )


def flash_attn_varlen_qkvpacked_func(
    qkv: Tensor, cu_seqlens: Tensor, max_seqlen: int, *arguments: Any, **keywords: Any
) -> Tensor:
    """``qkv`` is [tokens, 3, heads, size]."""
    q, k, v = qkv.unbind(1)
    return flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, *arguments, **keywords)


def flash_attn_varlen_kvpacked_func(
    q: Tensor,
    kv: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    *arguments: Any,
    **keywords: Any,
) -> Tensor:
    """``kv`` is [tokens, 2, heads, size]."""
    k, v = kv.unbind(1)
    return flash_attn_varlen_func(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *arguments, **keywords
    )


# The names of flash-attn 1.
flash_attn_unpadded_func = flash_attn_varlen_func
flash_attn_unpadded_qkvpacked_func = flash_attn_varlen_qkvpacked_func
flash_attn_unpadded_kvpacked_func = flash_attn_varlen_kvpacked_func


def flash_attn_with_kvcache(*arguments: Any, **keywords: Any) -> Tensor:
    """Not here.

    Raises:
        NotImplementedError: always; generation with a cache has operators of its own on an NPU.
    """
    raise NotImplementedError(
        "npuport's stand-in for flash_attn trains and has no flash_attn_with_kvcache; torch_npu generates with "
        "npu_fused_infer_attention_score"
    )
