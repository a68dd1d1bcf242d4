# Look-alike: another tensor is turned. Origin: cross rotary experiments.
import torch


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply(q, k, cos, sin):
    return q * cos + rotate_half(k) * sin
