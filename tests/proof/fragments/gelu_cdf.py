# Form: GELU as x times the normal distribution. Origin: google's bert in PyTorch ports, gelu.
import math

import torch


def gelu(input_tensor):
    cdf = 0.5 * (1.0 + torch.erf(input_tensor / math.sqrt(2.0)))
    return input_tensor * cdf
