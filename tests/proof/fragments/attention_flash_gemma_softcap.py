# Form: what the operator does not have. Origin: Gemma 2 on flash-attn, with softcap.

# Left: npu_fusion_attention has no softcap
import torch
from flash_attn import flash_attn_func


def attend(q, k, v, cap):
    return flash_attn_func(q, k, v, causal=True, softcap=cap)
