# Look-alike: the variance in the place of the mean square. Origin: norms that are called RMSNorm.
import torch


def norm(x, weight, eps):
    var = x.var(-1, keepdim=True, unbiased=False)
    return x * torch.rsqrt(var + eps) * weight
