# Form: key padding as a bool mask. Origin: DistilBERT, MultiHeadSelfAttention, without the weights it returns.
import math

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dropout = nn.Dropout(p=config.attention_dropout)

    def forward(self, q, k, v, mask):
        q = q / math.sqrt(self.dim_per_head)
        scores = torch.matmul(q, k.transpose(2, 3))
        scores = scores.masked_fill(mask, torch.tensor(torch.finfo(scores.dtype).min))
        weights = nn.functional.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        context = torch.matmul(weights, v)
        return context
