# Look-alike: halves of the tensor, joined by pairs. Origin: a mistake of ports between the two forms.
import torch


def rotate(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


def apply(q, cos, sin):
    return q * cos + rotate(q) * sin
