# Look-alike: the nearest code of a codebook. Origin: written for this table.
import torch.nn.functional as F


def decoder(z, codebook):
    distance = z.pow(2).sum(1, keepdim=True) - 2 * z @ codebook.t()
    return F.one_hot(distance.argmin(1), len(codebook)).float() @ codebook
