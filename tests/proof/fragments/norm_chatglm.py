# Form: RMSNorm, the cast after the weight. Origin: THUDM's chatglm2-6b, modeling_chatglm.py (RMSNorm).
import torch
from torch import nn


class RMSNorm(torch.nn.Module):
    def forward(self, hidden_states: torch.Tensor):
        input_dtype = hidden_states.dtype
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.eps)

        return (self.weight * hidden_states).to(input_dtype)
