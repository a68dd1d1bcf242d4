# Form: RMSNorm with add_ on the mean. Origin: InternLM and Baichuan forks.
import torch
from torch import nn


class RMSNorm(nn.Module):
    def forward(self, x):
        scale = x.float().pow(2).mean(-1, keepdim=True).add_(self.epsilon).rsqrt_()
        return (x.float() * scale).to(x.dtype) * self.weight
