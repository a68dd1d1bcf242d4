# Form: the key comes transposed already. Origin: GPT of openai/finetune-transformer-lm in its PyTorch port.
import math

import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, n_ctx, config):
        super().__init__()
        self.attn_dropout = nn.Dropout(config.attn_pdrop)
        self.register_buffer("b", torch.tril(torch.ones(n_ctx, n_ctx)).view(1, 1, n_ctx, n_ctx))

    def _attn(self, q, k, v, T):
        w = torch.matmul(q, k)
        w = w / math.sqrt(v.size(-1))
        w = w.masked_fill(self.b[:, :, :T, :T] == 0, -1e4)
        w = nn.functional.softmax(w, dim=-1)
        w = self.attn_dropout(w)
        return torch.matmul(w, v)
