# Form: rotary by pairs with einops. Origin: lucidrains' rotary-embedding-torch.
import torch
from einops import rearrange


def rotate_half(x):
    x = rearrange(x, "... (d r) -> ... d r", r=2)
    x1, x2 = x.unbind(dim=-1)
    x = torch.stack((-x2, x1), dim=-1)
    return rearrange(x, "... d r -> ... (d r)")


def apply_rotary_emb(freqs, t):
    return (t * freqs.cos()) + (rotate_half(t) * freqs.sin())
