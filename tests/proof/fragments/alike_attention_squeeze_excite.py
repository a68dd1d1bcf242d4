# Look-alike: channels weighted by a sigmoid. Origin: written for this table.
import torch
import torch.nn.functional as F


def squeeze_excite(x, reduce, expand):
    return x * torch.sigmoid(expand(F.relu(reduce(x.mean((2, 3), keepdim=True)))))
