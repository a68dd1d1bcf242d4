# Form: casts to float32 around the softmax, an added mask. Origin: Meta's llama, model.py (Attention.forward).
import math

import torch
import torch.nn.functional as F


class Attention(torch.nn.Module):
    def forward(self, xq, keys, values, mask):
        bsz, seqlen, _, _ = xq.shape
        xq = xq.transpose(1, 2)
        keys = keys.transpose(1, 2)
        values = values.transpose(1, 2)
        scores = torch.matmul(xq, keys.transpose(2, 3)) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores.float(), dim=-1).type_as(xq)
        output = torch.matmul(scores, values)
        output = output.transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        return self.wo(output)
