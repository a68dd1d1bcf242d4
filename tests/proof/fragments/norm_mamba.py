# Form: the reciprocal of a square root, kept for nobody. Origin: state-spaces/mamba, ops/triton/layernorm.py (rms_norm_ref), without its bias.
import torch


def rms_norm_ref(x, weight, eps=1e-6):
    dtype = x.dtype
    x = x.float()
    rstd = 1 / torch.sqrt((x.square()).mean(dim=-1, keepdim=True) + eps)
    out = x * rstd * weight
    return out.to(dtype)
