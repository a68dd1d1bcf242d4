# Form: the two halves turned one by one. Origin: Dao-AILab's flash-attention, layers/rotary.py, the reference without a kernel.
import torch


def apply_rotary_emb_torch(x, cos, sin):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)
