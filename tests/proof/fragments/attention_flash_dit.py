# Form: flash_attn_func with a dropout module and the class's scale. Origin: Open-Sora, layers/blocks.py (Attention).
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, num_heads, attn_drop=0.0):
        super().__init__()
        self.scale = (dim // num_heads) ** -0.5
        self.attn_drop = nn.Dropout(attn_drop)

    def forward(self, q, k, v):
        from flash_attn import flash_attn_func

        q = q.permute(0, 2, 1, 3)
        k = k.permute(0, 2, 1, 3)
        v = v.permute(0, 2, 1, 3)
        x = flash_attn_func(
            q,
            k,
            v,
            dropout_p=self.attn_drop.p if self.training else 0.0,
            softmax_scale=self.scale,
        )
        return x
