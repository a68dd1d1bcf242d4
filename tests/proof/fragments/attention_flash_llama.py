# Form: flash_attn_func, causal, in LLaMA's layout. Origin: Lit-GPT, xFormers-free LLaMA trainers, Open-Sora-like code.
import torch
from flash_attn import flash_attn_func


class LlamaAttention(torch.nn.Module):
    def forward(self, xq, xk, xv):
        bsz, seqlen, _, _ = xq.shape
        output = flash_attn_func(xq, xk, xv, dropout_p=0.0, causal=True)
        output = output.contiguous().view(bsz, seqlen, -1)
        return self.wo(output)
