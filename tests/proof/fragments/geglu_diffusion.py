# Form: GEGLU of the halves of one projection. Origin: CompVis stable-diffusion, ldm/modules/attention.py (GEGLU).
import torch
import torch.nn.functional as F
from torch import nn


class GEGLU(nn.Module):
    def forward(self, x):
        x, gate = self.proj(x).chunk(2, dim=-1)
        return x * F.gelu(gate)
