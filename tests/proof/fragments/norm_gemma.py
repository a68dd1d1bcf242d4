# Form: RMSNorm with one added to the weight, in float32. Origin: transformers, models/gemma/modeling_gemma.py, its two methods in one.
import torch
from torch import nn


class GemmaRMSNorm(nn.Module):
    def forward(self, x):
        output = x.float()
        output = output * torch.rsqrt(output.pow(2).mean(-1, keepdim=True) + self.eps)
        output = output * (1.0 + self.weight.float())
        return output.type_as(x)
