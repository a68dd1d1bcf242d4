# Look-alike: swish with a slope of 1.5 beside quick GELU's. Origin: activation tables.
import torch


def swish(x, quick: bool):
    if quick:
        return 1.702
    return x * torch.sigmoid(1.5 * x)
