# Form: prompts of different lengths, block diagonal. Origin: PixArt-alpha, PixArt_blocks.py (MultiHeadCrossAttention).

# Left: what attn_bias, attn_bias, is, is known at run time only
import torch
import xformers.ops


class MultiHeadCrossAttention(torch.nn.Module):
    def forward(self, x, cond, mask=None):
        B, N, C = x.shape
        q = self.q_linear(x).view(1, -1, self.num_heads, self.head_dim)
        kv = self.kv_linear(cond).view(1, -1, 2, self.num_heads, self.head_dim)
        k, v = kv.unbind(2)
        attn_bias = None
        if mask is not None:
            attn_bias = xformers.ops.fmha.BlockDiagonalMask.from_seqlens([N] * B, mask)
        x = xformers.ops.memory_efficient_attention(q, k, v, p=self.attn_drop.p, attn_bias=attn_bias)
        return x.view(B, -1, C)
