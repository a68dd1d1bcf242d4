# Look-alike: linear attention, whose softmaxes are over each factor. Origin: written for this table.
import torch


def linear_attention(q, k, v):
    q, k = q.softmax(dim=-1), k.softmax(dim=-2)
    context = torch.einsum("bhnd,bhne->bhde", k, v)
    return torch.einsum("bhnd,bhde->bhne", q, context)
