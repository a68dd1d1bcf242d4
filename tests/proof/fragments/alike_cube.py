# Look-alike: a third power in the place of the square. Origin: written for this table.
import torch


def norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(3).mean(-1, keepdim=True) + eps) * weight
