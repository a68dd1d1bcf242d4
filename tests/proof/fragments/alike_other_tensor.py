# Look-alike: the mean square of another tensor. Origin: gated norms.
import torch


def norm(x, gate, eps):
    return gate * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
