# Form: SwiGLU whose second half goes through silu. Origin: lucidrains' PaLM-pytorch (SwiGLU).
import torch
import torch.nn.functional as F
from torch import nn


class SwiGLU(nn.Module):
    def forward(self, x):
        x, gate = x.chunk(2, dim=-1)
        return F.silu(gate) * x
