# Form: two biases added in place. Origin: OpenFold, primitives.py (_attention).
import torch


def permute_final_dims(tensor, inds):
    return tensor.permute(*range(tensor.dim() - len(inds)), *(tensor.dim() - len(inds) + i for i in inds))


def attention(query, key, value, mask_bias, pair_bias):
    key = permute_final_dims(key, (1, 0))
    a = torch.matmul(query, key)
    a += mask_bias
    a += pair_bias
    a = torch.nn.functional.softmax(a, dim=-1)
    a = torch.matmul(a, value)
    return a
