# Form: three parts, of which two meet. Origin: gated attention units (three projections in one).
import torch
import torch.nn.functional as F


def gate(x):
    a, b, c = x.chunk(3, dim=-1)
    return F.silu(a) * b, c
