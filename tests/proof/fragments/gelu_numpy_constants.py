# Form: GELU with tanh, constants from NumPy. Origin: MAE and Swin ports, and BERT in JAX ports.
import numpy as np
import torch
from torch import nn


class GELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * torch.pow(x, 3))))
