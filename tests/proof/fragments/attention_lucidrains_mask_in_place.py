# Form: the mask is filled in place, with minus the largest number. Origin: perceiver-pytorch and stable-diffusion, with mask.
import torch
from einops import rearrange, repeat
from torch import einsum, nn


class CrossAttention(nn.Module):
    def __init__(self, heads, dim_head):
        super().__init__()
        self.scale = dim_head**-0.5
        self.heads = heads

    def forward(self, q, k, v, mask=None):
        sim = einsum("b i d, b j d -> b i j", q, k) * self.scale
        if mask is not None:
            mask = rearrange(mask, "b ... -> b (...)")
            max_neg_value = -torch.finfo(sim.dtype).max
            mask = repeat(mask, "b j -> (b h) () j", h=self.heads)
            sim.masked_fill_(~mask, max_neg_value)
        attn = sim.softmax(dim=-1)
        return einsum("b i j, b j d -> b i d", attn, v)
