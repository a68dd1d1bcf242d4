# Form: what lies outside an interval, copied through a mask. Origin: VITS of transformers, the spline's tails.
import torch
from torch import nn


class Spline(nn.Module):
    def forward(self, inputs, tail_bound):
        outside_mask = (inputs < -tail_bound) | (inputs > tail_bound)
        outputs = torch.zeros_like(inputs)
        outputs[outside_mask] = inputs[outside_mask]
        return outputs
