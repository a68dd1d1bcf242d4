# Look-alike: a linear classifier and its probabilities. Origin: written for this table.
import torch.nn.functional as F


def classify(features, head):
    return F.softmax(features @ head, dim=-1)
