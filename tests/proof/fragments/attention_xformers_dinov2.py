# Form: four dimensions, no bias. Origin: DINOv2, layers/attention.py (MemEffAttention) without nested tensors.
import torch
from xformers.ops import memory_efficient_attention, unbind


class MemEffAttention(torch.nn.Module):
    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = unbind(qkv, 2)
        x = memory_efficient_attention(q, k, v, attn_bias=None)
        x = x.reshape([B, N, C])
        return self.proj_drop(self.proj(x))
