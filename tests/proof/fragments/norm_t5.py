# Form: RMSNorm cast to half precision only where the weight is. Origin: transformers, models/t5/modeling_t5.py (T5LayerNorm).
import torch
from torch import nn


class T5LayerNorm(nn.Module):
    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)

        # convert into half-precision if necessary
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            hidden_states = hidden_states.to(self.weight.dtype)

        return self.weight * hidden_states
