# Look-alike: a mask that is changed before it is used. Origin: loss functions with minimum counts.
import torch
from torch import nn


class Loss(nn.Module):
    def forward(self, loss, keep):
        mask = loss > 0
        mask[keep] = True
        return loss[mask].sum()
