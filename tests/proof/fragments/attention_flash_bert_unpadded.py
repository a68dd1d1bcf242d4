# Form: varlen with one packed tensor. Origin: MosaicBERT and nomic-bert, BertUnpadSelfAttention.
import torch
from flash_attn import flash_attn_varlen_qkvpacked_func


class BertUnpadSelfAttention(torch.nn.Module):
    def forward(self, qkv, cu_seqlens, max_seqlen):
        attention = flash_attn_varlen_qkvpacked_func(
            qkv, cu_seqlens, max_seqlen, dropout_p=self.p_dropout if self.training else 0.0
        )
        return attention
