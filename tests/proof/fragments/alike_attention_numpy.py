# Look-alike: attention in NumPy. Origin: written for this table.
import numpy as np


def numpy_attention(q, k, v):
    scores = np.matmul(q, k.transpose(0, 2, 1))
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return np.matmul(scores / scores.sum(-1, keepdims=True), v)
