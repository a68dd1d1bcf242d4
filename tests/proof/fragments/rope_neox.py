# Form: rotary of a part of each head. Origin: transformers, models/gpt_neox/modeling_gpt_neox.py.
import torch


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply(query, key, cos, sin, ndims):
    query_rot, query_pass = query[..., :ndims], query[..., ndims:]
    key_rot, key_pass = key[..., :ndims], key[..., ndims:]
    query = (query_rot * cos) + (rotate_half(query_rot) * sin)
    key = (key_rot * cos) + (rotate_half(key_rot) * sin)
    return torch.cat((query, query_pass), dim=-1), torch.cat((key, key_pass), dim=-1)
