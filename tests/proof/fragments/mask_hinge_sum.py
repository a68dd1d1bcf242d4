# Form: the sum over what violates a margin. Origin: metric learning losses (triplet and contrastive).
import torch
from torch import nn


class Hinge(nn.Module):
    def forward(self, anchor, positive, negative):
        margin = self.margin + (anchor * negative).sum(-1) - (anchor * positive).sum(-1)
        hard_mask = margin > 0
        return margin[hard_mask].sum()
