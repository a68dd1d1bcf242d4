# Form: GEGLU of the halves of one tensor. Origin: lucidrains' x-transformers and vit-pytorch.
import torch
import torch.nn.functional as F
from torch import nn


class GEGLU(nn.Module):
    def forward(self, x):
        x, gate = x.chunk(2, dim=-1)
        return x * F.gelu(gate)
