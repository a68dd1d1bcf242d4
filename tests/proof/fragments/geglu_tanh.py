# Form: GEGLU of two projections in the form with tanh. Origin: google's gemma_pytorch, model.py (GemmaMLP).
import torch
import torch.nn.functional as F
from torch import nn


class GemmaMLP(nn.Module):
    def forward(self, x):
        gate = self.gate_proj(x)
        gate = F.gelu(gate, approximate="tanh")
        up = self.up_proj(x)
        fuse = gate * up
        outputs = self.down_proj(fuse)
        return outputs
