# Look-alike: RMSNorm with eps outside the root. Origin: bzhangGo/rmsnorm.
import torch
from torch import nn


class RMSNorm(nn.Module):
    def forward(self, x):
        rms = x.pow(2).mean(-1, keepdim=True).sqrt()
        return self.scale * (x / (rms + self.eps))
