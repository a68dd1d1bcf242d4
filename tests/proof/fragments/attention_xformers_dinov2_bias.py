# Form: a mask that comes from elsewhere. Origin: DINOv2, MemEffAttention.forward(x, attn_bias).

# Left: what attn_bias, attn_bias, is, is known at run time only
import torch
from xformers.ops import memory_efficient_attention, unbind


class MemEffAttention(torch.nn.Module):
    def forward(self, x, attn_bias=None):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = unbind(qkv, 2)
        return memory_efficient_attention(q, k, v, attn_bias=attn_bias)
