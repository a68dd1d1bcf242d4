# Form: a sliding window. Origin: Mistral-like trainers, flash_attn_func with window_size.
import torch
from flash_attn import flash_attn_func

WINDOW = 4096


def attend(q, k, v):
    return flash_attn_func(q, k, v, causal=True, window_size=(WINDOW, WINDOW))
