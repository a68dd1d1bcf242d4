# Form: SwiGLU of two projections. Origin: Meta's llama, model.py (FeedForward).
import torch
import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Module):
    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))
