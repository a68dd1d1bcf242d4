# Form: softcapped scores. Origin: Gemma 2 of transformers, eager_attention_forward, without the weights.

# Left: the scores go through
import torch
from torch import nn


def eager(query, key, value, attention_mask, scaling, softcap):
    attn_weights = torch.matmul(query, key.transpose(2, 3)) * scaling
    attn_weights = attn_weights / softcap
    attn_weights = torch.tanh(attn_weights)
    attn_weights = attn_weights * softcap
    attn_weights = attn_weights + attention_mask
    attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(attn_weights, value)
