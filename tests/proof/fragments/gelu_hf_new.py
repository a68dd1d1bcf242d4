# Form: GELU with tanh and torch.pow in a module. Origin: transformers, NewGELUActivation.
import math

import torch
from torch import Tensor, nn


class NewGELUActivation(nn.Module):
    def forward(self, input: Tensor) -> Tensor:
        return 0.5 * input * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (input + 0.044715 * torch.pow(input, 3.0))))
