# Form: a causal mask made on the spot. Origin: Karpathy's lectures and many course notebooks.
import torch
import torch.nn.functional as F


class Head(torch.nn.Module):
    def forward(self, q, k, v):
        T = q.shape[-2]
        mask = torch.triu(torch.ones(T, T, device=q.device), diagonal=1).bool()
        scores = q @ k.mT * q.shape[-1] ** -0.5
        scores = scores.masked_fill(mask, float("-inf"))
        return F.softmax(scores, dim=-1) @ v
