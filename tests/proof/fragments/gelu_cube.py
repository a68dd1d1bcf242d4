# Form: GELU with tanh, the cube as a product, methods. Origin: GPT-2 ports, gelu.
import math

import torch


def gelu(x):
    inner = (x * x * x * 0.044715 + x) * math.sqrt(2 / math.pi)
    return x * (inner.tanh() + 1) * 0.5
