# Look-alike: a mean of magnitudes, and no square. Origin: normalisation by the mean magnitude.
import torch


def mean_magnitude_norm(x, weight, eps):
    return x * torch.rsqrt(x.abs().mean(-1, keepdim=True) + eps) * weight
