# Form: SwiGLU of the halves of one tensor, taken by index. Origin: THUDM's chatglm2-6b, modeling_chatglm.py (MLP).
import torch
import torch.nn.functional as F


def swiglu(x):
    x = torch.chunk(x, 2, dim=-1)
    return F.silu(x[0]) * x[1]
