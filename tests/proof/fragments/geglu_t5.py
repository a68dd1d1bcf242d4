# Form: a gated unit whose activation is a function of the library's own. Origin: transformers, models/t5/modeling_t5.py (T5DenseGatedActDense).
import torch
from torch import nn


class T5DenseGatedActDense(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.act = ACT2FN[config.dense_act_fn]

    def forward(self, hidden_states):
        hidden_gelu = self.act(self.wi_0(hidden_states))
        hidden_linear = self.wi_1(hidden_states)
        hidden_states = hidden_gelu * hidden_linear
        return self.wo(hidden_states)
