# Form: causal. Origin: Open-LLaMA of transformers, and LLaMA trainers with xformers.
import xformers.ops as xops


class OpenLlamaAttention:
    def forward(self, query_states, key_states, value_states, bsz, q_len):
        query_states = query_states.view(bsz, q_len, self.num_heads, self.head_dim)
        attn_output = xops.memory_efficient_attention(
            query_states, key_states, value_states, attn_bias=xops.LowerTriangularMask(), p=self.dropout_prob
        )
        return attn_output
