# Form: keys and values packed, padding taken out. Origin: flash-attn's own FlashCrossAttention, modules/mha.py.
import torch
from flash_attn import flash_attn_kvpacked_func, flash_attn_varlen_kvpacked_func


class FlashCrossAttention(torch.nn.Module):
    def padded(self, q, kv, causal):
        return flash_attn_kvpacked_func(q, kv, self.drop.p if self.training else 0.0, causal=causal)

    def forward(self, q, kv, cu_seqlens, max_seqlen, cu_seqlens_k, max_seqlen_k, causal):
        return flash_attn_varlen_kvpacked_func(
            q,
            kv,
            cu_seqlens,
            cu_seqlens_k,
            max_seqlen,
            max_seqlen_k,
            self.drop.p if self.training else 0.0,
            causal=causal,
        )
