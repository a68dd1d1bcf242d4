# Look-alike: masked with a number that is not low. Origin: temperature experiments.
import torch
import torch.nn.functional as F


def weights(scores, mask):
    scores = scores.masked_fill(mask, 0.0)
    return F.softmax(scores, dim=-1)
