# Form: GELU with erf between two layers. Origin: ViT ports, the MLP of a block.
import torch
from torch import nn


class Mlp(nn.Module):
    def forward(self, x):
        h = self.fc1(x)
        h = h * 0.5 * (1.0 + torch.erf(h / 1.4142135623730951))
        return self.fc2(h)
