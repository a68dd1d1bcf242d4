# Look-alike: scores that are thrown away before the softmax. Origin: written for this table.
import torch.nn.functional as F


def name_given_anew(q, k, v, other):
    scores = q @ k
    scores = other
    return F.softmax(scores, dim=-1) @ v
