# Look-alike: a rotation of a third and two thirds. Origin: sections of multimodal rotary embeddings.
import torch


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 3]
    x2 = x[..., x.shape[-1] // 3 :]
    return torch.cat((-x2, x1), dim=-1)


def apply(q, cos, sin):
    return q * cos + rotate_half(q) * sin
