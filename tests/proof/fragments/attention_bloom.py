# Form: baddbmm with the bias of ALiBi. Origin: BLOOM of transformers, BloomAttention.forward.

# Left: the factors of the product are not seen
import torch
import torch.nn.functional as F


class BloomAttention(torch.nn.Module):
    def forward(self, query_layer, key_layer, value_layer, alibi, attention_mask, batch_size, q_length, kv_length):
        matmul_result = alibi.baddbmm(
            batch1=query_layer, batch2=key_layer, beta=self.beta, alpha=self.inv_norm_factor
        )
        attention_scores = matmul_result.view(batch_size, self.num_heads, q_length, kv_length)
        attn_weights = torch.masked_fill(attention_scores, attention_mask, torch.finfo(attention_scores.dtype).min)
        attention_probs = F.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query_layer.dtype)
        attention_probs_reshaped = attention_probs.view(batch_size * self.num_heads, q_length, kv_length)
        return torch.bmm(attention_probs_reshaped, value_layer)
