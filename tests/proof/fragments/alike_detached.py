# Look-alike: RMSNorm whose root has no gradient. Origin: DyT-like experiments and reinforcement learning.
import torch


def norm(x, weight, eps):
    scale = torch.rsqrt(x.detach().pow(2).mean(-1, keepdim=True) + eps)
    return x * scale * weight
