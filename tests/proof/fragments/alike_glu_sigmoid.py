# Look-alike: the gate goes through sigmoid alone. Origin: gated linear units of convolution models.
import torch


def glu(x):
    a, b = x.chunk(2, dim=-1)
    return a * torch.sigmoid(b)
