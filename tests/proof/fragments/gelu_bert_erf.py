# Form: GELU with erf. Origin: BERT in the form of NVIDIA DeepLearningExamples, gelu.
import math

import torch


def gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
