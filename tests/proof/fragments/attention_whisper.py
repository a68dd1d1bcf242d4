# Form: the scores are handed on. Origin: openai/whisper, model.py (qkv_attention, the slow branch).

# Left: qk is used further
import torch
import torch.nn.functional as F


class MultiHeadAttention(torch.nn.Module):
    def qkv_attention(self, q, k, v, n_ctx, mask=None):
        scale = q.shape[-1] ** -0.25
        qk = (q * scale) @ (k * scale).transpose(-1, -2)
        if mask is not None:
            qk = qk + mask[:n_ctx, :n_ctx]
        qk = qk.float()
        w = F.softmax(qk, dim=-1).to(q.dtype)
        out = (w @ v).permute(0, 2, 1, 3).flatten(start_dim=2)
        return out, qk.detach()
