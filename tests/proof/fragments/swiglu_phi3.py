# Form: halves of one projection, the activation chosen by a configuration. Origin: transformers, models/phi3/modeling_phi3.py (Phi3MLP).
import torch
from torch import nn


class Phi3MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.activation_fn = ACT2FN[config.hidden_act]

    def forward(self, hidden_states):
        up_states = self.gate_up_proj(hidden_states)
        gate, up_states = up_states.chunk(2, dim=-1)
        up_states = up_states * self.activation_fn(gate)
        return self.down_proj(up_states)
