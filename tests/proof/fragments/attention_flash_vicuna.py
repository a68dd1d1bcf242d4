# Form: one packed tensor without padding, flash-attn 1. Origin: FastChat, llama_flash_attn_monkey_patch.py.
import torch
from flash_attn.flash_attn_interface import flash_attn_unpadded_qkvpacked_func


def forward(self, qkv, bsz, q_len):
    qkv = qkv.reshape(bsz * q_len, 3, self.num_heads, self.head_dim)
    max_s = q_len
    cu_q_lens = torch.arange(0, (bsz + 1) * q_len, step=q_len, dtype=torch.int32, device=qkv.device)
    output = flash_attn_unpadded_qkvpacked_func(qkv, cu_q_lens, max_s, 0.0, softmax_scale=None, causal=True)
    return output.reshape(bsz, q_len, -1)
