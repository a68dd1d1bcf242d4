# Form: the two of each pair turned one by one. Origin: torchtune and ChatGLM, on slices of two.
import torch


def apply_rotary(x, cos, sin):
    x1 = x[..., ::2]
    x2 = x[..., 1::2]
    out = torch.stack([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1).flatten(-2)
    return out.type_as(x)
