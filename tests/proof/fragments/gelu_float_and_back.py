# Form: GELU with erf in float32, cast back. Origin: fairseq, modules/gelu.py, written out.
import math

import torch


def gelu(x: torch.Tensor) -> torch.Tensor:
    y = x.float()
    return (0.5 * y * (1.0 + torch.erf(y / math.sqrt(2.0)))).type_as(x)
