# Look-alike: quick GELU whose gate has no gradient. Origin: straight-through gates.
import torch


def gate(x):
    return x * torch.sigmoid(1.702 * x.detach())
