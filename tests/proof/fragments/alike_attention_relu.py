# Look-alike: attention with a ReLU and a division. Origin: written for this table.
import torch.nn.functional as F


def relu_attention(q, k, v):
    return (F.relu(q @ k.transpose(-2, -1)) / k.shape[-2]) @ v
