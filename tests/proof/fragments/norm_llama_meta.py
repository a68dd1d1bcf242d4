# Form: RMSNorm in a method of its own, without the weight. Origin: Meta's llama, model.py (RMSNorm), and Megatron-LM's legacy rms_norm.py.
import torch
from torch import nn


class RMSNorm(nn.Module):
    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight
