# Form: einsum with heads third, a mask by where. Origin: Evoformer-like and JAX-derived ports, `bqhd,bkhd->bhqk`.
import torch


def attend(query, key, value, mask):
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / query.shape[-1] ** 0.5
    scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, value)
