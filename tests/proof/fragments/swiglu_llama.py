# Form: SwiGLU of two projections, the activation chosen by a configuration. Origin: transformers, models/llama/modeling_llama.py (LlamaMLP).
import torch
from torch import nn


class LlamaMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.act_fn = ACT2FN[config.hidden_act]

    def forward(self, x):
        down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
        return down_proj
