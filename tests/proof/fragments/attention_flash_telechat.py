# Form: flash-attn 1 over sequences of one length, always causal. Origin: TeleChat, modeling_telechat.py (FlashSelfAttention).
import torch
from einops import rearrange
from flash_attn.flash_attn_interface import flash_attn_unpadded_func


class FlashSelfAttention(torch.nn.Module):
    def forward(self, q, k, v):
        batch_size, seqlen_q = q.shape[0], q.shape[1]
        q, k, v = [rearrange(x, "b s ... -> (b s) ...") for x in [q, k, v]]
        cu_seqlens_q = torch.arange(0, (batch_size + 1) * seqlen_q, step=seqlen_q, dtype=torch.int32, device=q.device)
        output = flash_attn_unpadded_func(
            q, k, v, cu_seqlens_q, cu_seqlens_q, seqlen_q, seqlen_q, self.dropout_p,
            softmax_scale=self.softmax_scale, causal=True,
        )
        return rearrange(output, "(b s) ... -> b s ...", b=batch_size)
