# Look-alike: a rotation the other way. Origin: inverse rotary embeddings.
import torch


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((x2, -x1), dim=-1)


def apply(q, cos, sin):
    return q * cos + rotate_half(q) * sin
