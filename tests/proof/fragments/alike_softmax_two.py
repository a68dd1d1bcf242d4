# Look-alike: masked scores that others read too. Origin: attention that returns its scores.
import torch
import torch.nn.functional as F


def weights(scores, mask):
    scores = scores.masked_fill(mask, -1e9)
    return F.softmax(scores, dim=-1), scores.max()
