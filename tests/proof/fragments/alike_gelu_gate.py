# Look-alike: one tensor times the normal distribution of another. Origin: GEGLU by hand.
import math

import torch


def gate(x, y):
    return y * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
