# Form: a tensor that is added, three dimensions. Origin: text-generation-webui and ViTDet ports, rel_pos as attn_bias.
import torch
import xformers.ops as xops
from einops import rearrange


def attend(q, k, v, rel_pos, heads):
    q, k, v = (rearrange(t, "b n (h d) -> (b h) n d", h=heads) for t in (q, k, v))
    bias = rel_pos.to(q.dtype)
    out = xops.memory_efficient_attention(q, k, v, attn_bias=bias, scale=0.125)
    return rearrange(out, "(b h) n d -> b n (h d)", h=heads)
