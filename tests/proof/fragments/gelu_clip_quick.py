# Form: quick GELU in a module. Origin: OpenAI's CLIP, QuickGELU.
import torch
from torch import nn


class QuickGELU(nn.Module):
    def forward(self, x: torch.Tensor):
        return x * torch.sigmoid(1.702 * x)
