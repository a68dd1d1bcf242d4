# Form: quick GELU as a function with a flag. Origin: timm, layers/activations.py (quick_gelu), without inplace.
import torch


def quick_gelu(x, inplace: bool = False) -> torch.Tensor:
    return x.mul(torch.sigmoid(x * 1.702))
