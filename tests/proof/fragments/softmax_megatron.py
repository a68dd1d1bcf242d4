# Form: a scaled and masked softmax. Origin: Megatron-LM, core/fusions/fused_softmax.py (forward_torch_softmax), its mask function in line.
import torch
from torch import nn


class FusedScaleMaskSoftmax(nn.Module):
    def forward_torch_softmax(self, input, mask):
        mask_output = input.masked_fill(mask, -10000.0)
        probs = torch.nn.Softmax(dim=-1)(mask_output)
        return probs
