# Form: a softmax over scores chosen by where. Origin: DeBERTa-like pooling.
import torch
import torch.nn.functional as F


def weights(scores, keep):
    scores = torch.where(keep, scores, torch.finfo(scores.dtype).min)
    return F.softmax(scores, dim=-1)
