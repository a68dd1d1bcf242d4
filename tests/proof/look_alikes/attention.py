# What has the words of attention and is none: each function stands for a kind. No rule on attention may find any.
import jax
import numpy as np
import torch
import torch.nn.functional as F
from mine import flash_attn_func, memory_efficient_attention, ops
from torch import nn


def classify(features, head):
    return F.softmax(features @ head, dim=-1)


def contrastive(image, text, scale):
    logits = scale * image @ text.t()
    return F.cross_entropy(logits, torch.arange(len(logits))), logits.softmax(dim=-1)


def linear_attention(q, k, v):
    q, k = q.softmax(dim=-1), k.softmax(dim=-2)
    context = torch.einsum("bhnd,bhne->bhde", k, v)
    return torch.einsum("bhnd,bhde->bhne", q, context)


def kernel_attention(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return q @ (k.transpose(-2, -1) @ v)


def mixture(x, gate, experts):
    weights = F.softmax(gate(x), dim=-1)
    return torch.einsum("be,bed->bd", weights, experts)


def retrieval(query, memory):
    return (query @ memory.t()).topk(5)


def soft_argmax(heat, grid):
    return torch.softmax(heat.flatten(1), dim=-1) @ grid


def attention_pooling(x, w):
    weights = torch.softmax(x @ w, dim=1)
    return (weights * x).sum(dim=1)


def additive_attention(query, keys, values, w, u, v):
    scores = torch.tanh(query @ w + keys @ u) @ v
    return (torch.softmax(scores, dim=1) * values).sum(1)


def squeeze_excite(x, reduce, expand):
    return x * torch.sigmoid(expand(F.relu(reduce(x.mean((2, 3), keepdim=True)))))


def gram_matrix(x):
    return torch.bmm(x, x.transpose(1, 2)) / x.shape[-1]


def sinkhorn(cost, a, b):
    plan = torch.softmax(-cost, dim=-1)
    return plan * a[:, None] / (plan @ b)[:, None]


def numpy_attention(q, k, v):
    scores = np.matmul(q, k.transpose(0, 2, 1))
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return np.matmul(scores / scores.sum(-1, keepdims=True), v)


def jax_attention(q, k, v):
    return jax.numpy.matmul(jax.nn.softmax(jax.numpy.matmul(q, k)), v)


def fused_already(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def own_flash(q, k, v):
    return flash_attn_func(q, k, v, causal=True)


def own_memory_efficient(q, k, v):
    return memory_efficient_attention(q, k, v) + ops.memory_efficient_attention(q, k, v)


def sigmoid_attention(q, k, v):
    return torch.sigmoid(q @ k.transpose(-2, -1)) @ v


def relu_attention(q, k, v):
    return (F.relu(q @ k.transpose(-2, -1)) / k.shape[-2]) @ v


def log_probabilities(x, w, v):
    return F.log_softmax(x @ w, dim=-1) @ v


def sampled(logits, table):
    return torch.multinomial(torch.softmax(logits, dim=-1), 1) @ table


def two_softmaxes(scores, x, w):
    scores = torch.softmax(scores, dim=-1)
    return torch.softmax(x @ w, dim=-1), scores


def name_given_anew(q, k, v, other):
    scores = q @ k
    scores = other
    return F.softmax(scores, dim=-1) @ v


def decoder(z, codebook):
    distance = z.pow(2).sum(1, keepdim=True) - 2 * z @ codebook.t()
    return F.one_hot(distance.argmin(1), len(codebook)).float() @ codebook


class Router(nn.Module):
    def forward(self, x):
        probabilities = F.softmax(F.linear(x, self.gate.weight), dim=-1)
        return probabilities @ self.experts
