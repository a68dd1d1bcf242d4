# Look-alike: rows of a tensor taken by a mask over its first dimension. Origin: BERT's masked tokens.
import torch
from torch import nn


class Head(nn.Module):
    def forward(self, hidden, labels):
        mask = labels != -100
        return hidden[mask].sum(), hidden[mask].mean()
