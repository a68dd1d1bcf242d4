# Form: RMSNorm by torch.mean of a power. Origin: timm, layers/fast_norm.py (rms_norm), with a weight.
import torch


def rms_norm(x, weight, eps=1e-5):
    v = torch.mean(x.pow(2), dim=-1, keepdim=True)
    x = x * torch.rsqrt(v + eps)
    x = x * weight
    return x
