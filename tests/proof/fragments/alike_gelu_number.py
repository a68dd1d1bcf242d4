# Look-alike: GELU with tanh and two digits changed about. Origin: a misprint of 0.044715.
import math

import torch


def gelu(x):
    wanted = 0.044715
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.047415 * x**3))), wanted
