# Form: heads folded into the batch, three dimensions. Origin: CompVis stable-diffusion, ldm/modules/attention.py.
from torch import einsum
import torch.nn as nn


class CrossAttention(nn.Module):
    def __init__(self, query_dim, dim_head=64):
        super().__init__()
        self.scale = dim_head**-0.5

    def forward(self, q, k, v):
        sim = einsum("b i d, b j d -> b i j", q, k) * self.scale
        attn = sim.softmax(dim=-1)
        out = einsum("b i j, b j d -> b i d", attn, v)
        return out
