# Form: a softmax over scores where the mask is 0. Origin: graph attention networks and pooling layers.
import torch
import torch.nn.functional as F


def attention_weights(scores, mask):
    scores = scores.masked_fill(mask == 0, float("-inf"))
    return F.softmax(scores, dim=-1)
