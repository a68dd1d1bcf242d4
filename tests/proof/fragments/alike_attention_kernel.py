# Look-alike: attention by a kernel of features, without a softmax. Origin: written for this table.
import torch.nn.functional as F


def kernel_attention(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return q @ (k.transpose(-2, -1) @ v)
