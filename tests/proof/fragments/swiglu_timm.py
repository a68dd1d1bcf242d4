# Form: SwiGLU with the activation as a module. Origin: timm, layers/mlp.py (SwiGLU).
import torch
from torch import nn


class SwiGLU(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.SiLU()

    def forward(self, x):
        x_gate = self.fc1_g(x)
        x = self.fc1_x(x)
        x = self.act(x_gate) * x
        x = self.drop1(x)
        return self.fc2(x)
