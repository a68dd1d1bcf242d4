# Form: additive mask, softmax in float32 and back, repeated key heads. Origin: LLaMA of HuggingFace before 4.48.
import math

import torch
import torch.nn as nn


class LlamaAttention(nn.Module):
    def forward(self, query_states, key_states, value_states, attention_mask):
        attn_weights = torch.matmul(query_states, key_states.transpose(2, 3)) / math.sqrt(self.head_dim)
        if attention_mask is not None:
            attn_weights = attn_weights + attention_mask
        attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query_states.dtype)
        attn_output = torch.matmul(attn_weights, value_states)
        return attn_output.transpose(1, 2).contiguous()
