# Look-alike: the eps is added to the weight, and the root has none. Origin: written for this table.
import torch


def norm(x, weight, eps):
    return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + eps) * (weight + eps)
