# Form: SwiGLU of halves of the channels in front. Origin: NAFNet-like convolution blocks.
import torch
import torch.nn.functional as F


def gate(x):
    a, b = x.chunk(2, dim=1)
    return F.silu(a) * b
