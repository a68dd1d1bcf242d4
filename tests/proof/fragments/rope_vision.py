# Form: rotary in float32 and back. Origin: transformers, models/qwen2_vl/modeling_qwen2_vl.py, vision.
import torch


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb_vision(tensor, cos, sin):
    orig_dtype = tensor.dtype
    tensor = tensor.float()
    output = (tensor * cos) + (rotate_half(tensor) * sin)
    output = output.to(orig_dtype)
    return output
