# Form: SwiGLU of the halves of one projection. Origin: facebookresearch/dinov2, layers/swiglu_ffn.py.
import torch
import torch.nn.functional as F
from torch import nn


class SwiGLUFFN(nn.Module):
    def forward(self, x):
        x12 = self.w12(x)
        x1, x2 = x12.chunk(2, dim=-1)
        hidden = F.silu(x1) * x2
        return self.w3(hidden)
