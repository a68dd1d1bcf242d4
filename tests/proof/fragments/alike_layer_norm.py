# Look-alike: the mean is taken away first. Origin: layer norms written out.
import torch


def layer_norm(x, weight, eps):
    x = x - x.mean(-1, keepdim=True)
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
