# Form: varlen over the patches of images. Origin: Qwen2-VL of transformers, VisionFlashAttention2.
import torch
from flash_attn import flash_attn_varlen_func


class VisionFlashAttention2(torch.nn.Module):
    def forward(self, hidden_states, cu_seqlens):
        seq_length = hidden_states.shape[0]
        q, k, v = self.qkv(hidden_states).reshape(seq_length, 3, self.num_heads, -1).permute(1, 0, 2, 3).unbind(0)
        max_seqlen = (cu_seqlens[1:] - cu_seqlens[:-1]).max().item()
        attn_output = flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen).reshape(
            seq_length, -1
        )
        return self.proj(attn_output)
