# Look-alike: a Gram matrix of features. Origin: written for this table.
import torch


def gram_matrix(x):
    return torch.bmm(x, x.transpose(1, 2)) / x.shape[-1]
