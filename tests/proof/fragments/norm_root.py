# Form: RMSNorm as a division by the root. Origin: mistral-src forks and course notebooks.
import torch


def norm(x, weight):
    rms = torch.sqrt(torch.mean(x * x, dim=-1, keepdim=True) + 1e-6)
    return x / rms * weight
