# Form: the mean of the losses whose label counts. Origin: language model trainers with per-token losses.
import torch
import torch.nn.functional as F


class Loss(torch.nn.Module):
    def forward(self, logits, labels):
        loss = F.cross_entropy(logits, labels, reduction="none")
        mask = labels != -100
        return loss[mask].mean()
