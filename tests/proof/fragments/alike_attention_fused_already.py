# Look-alike: a call of the fused function. Origin: written for this table.
import torch.nn.functional as F


def fused_already(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
