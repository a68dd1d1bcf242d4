# Look-alike: the mean square of the whole tensor. Origin: activation statistics.
import torch


def scaled(x, eps):
    return x * torch.rsqrt(x.pow(2).mean() + eps)
