# Form: baddbmm, views, a softmax that scales and masks, dropout in a fork of the generators. Origin: Megatron-LM,
# CoreAttention.forward (TeleChat's has the same steps).

# Left: not seen to go over the last dimension
import torch


class CoreAttention(torch.nn.Module):
    def forward(self, query_layer, key_layer, value_layer, attention_mask):
        output_size = (query_layer.size(1), query_layer.size(2), query_layer.size(0), key_layer.size(0))
        query_layer = query_layer.reshape(output_size[2], output_size[0] * output_size[1], -1)
        key_layer = key_layer.view(output_size[3], output_size[0] * output_size[1], -1)
        matmul_result = torch.baddbmm(
            self.buffer, query_layer.transpose(0, 1), key_layer.transpose(0, 1).transpose(1, 2), beta=0.0,
            alpha=(1.0 / self.norm_factor),
        )
        attention_scores = matmul_result.view(*output_size)
        attention_probs = self.scale_mask_softmax(attention_scores, attention_mask)
        with self.tracker.fork():
            attention_probs = self.attention_dropout(attention_probs)
        value_layer = value_layer.view(value_layer.size(0), output_size[0] * output_size[1], -1)
        attention_probs = attention_probs.view(output_size[0] * output_size[1], output_size[2], -1)
        return torch.bmm(attention_probs, value_layer.transpose(0, 1))
