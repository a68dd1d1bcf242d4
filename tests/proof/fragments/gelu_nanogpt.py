# Form: GELU with tanh in steps with names. Origin: nanoGPT and minGPT, new_gelu, one step after the other.
import math

import torch


def new_gelu(x):
    cubed = torch.pow(x, 3.0)
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * cubed)
    return 0.5 * x * (1.0 + torch.tanh(inner))
