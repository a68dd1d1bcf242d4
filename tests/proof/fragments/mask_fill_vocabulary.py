# Form: ids outside a part of the vocabulary set to 0. Origin: Megatron-LM, VocabParallelEmbedding.forward.
import torch


class Embedding(torch.nn.Module):
    def forward(self, input_):
        input_mask = (input_ < self.vocab_start_index) | (input_ >= self.vocab_end_index)
        masked_input = input_.clone() - self.vocab_start_index
        masked_input[input_mask] = 0
        return torch.nn.functional.embedding(masked_input, self.weight)
