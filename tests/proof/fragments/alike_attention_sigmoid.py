# Look-alike: attention with a sigmoid in the place of the softmax. Origin: written for this table.
import torch


def sigmoid_attention(q, k, v):
    return torch.sigmoid(q @ k.transpose(-2, -1)) @ v
