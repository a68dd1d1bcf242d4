"""Memory and speed of writing tokens, by the sizes of a model: what one device holds, and what it reads for a token.

Writing one token reads every weight that takes part, and the keys and values of all tokens before, once; a chip
computes faster than it reads, so that the memory's bandwidth is the upper bound of the rate (Pope et al. 2022,
Efficiently Scaling Transformer Inference). Real rates are lower: kernels do not reach the nominal bandwidth, and
communication and the host add time.
"""

from __future__ import annotations

from dataclasses import dataclass

from npuport.llm.planning.layout import Layout
from npuport.llm.planning.memory import hccl_buffers
from npuport.llm.planning.model import Model

WEIGHT_BYTES = {"bfloat16": 2, "float16": 2, "int8": 1}  # of linear layers; the other weights stay in 16 bits


@dataclass(frozen=True)
class Chats:
    """``batch`` chats at the same time, each of ``context`` tokens in the end."""

    context: int
    batch: int


@dataclass(frozen=True)
class Load:
    """Bytes of one device. ``read`` are those that each step of decoding reads at the end of the chats."""

    weights: float
    cache: float
    buffers: float
    read: float

    @property
    def held(self) -> float:
        return self.weights + self.cache + self.buffers


def divides(model: Model, devices: int) -> bool:
    """Whether tensor parallelism can divide the heads: keys and values are copied where there are fewer of them."""
    if model.heads % devices or model.ffn % devices:
        return False
    return model.kv_heads % devices == 0 or devices % model.kv_heads == 0


def load(model: Model, chats: Chats, devices: int, dtype: str) -> Load:
    """Of one of ``devices`` with tensor parallelism: weights in ``dtype`` of ``WEIGHT_BYTES``, the cache in 16 bits."""
    size = WEIGHT_BYTES[dtype]
    attention, expert = size * model.attention_parameters, size * model.expert_parameters
    whole = 2 * (2 * model.norm_parameters + model.router_parameters)
    head = 2 * model.vocabulary * model.hidden
    embedding = 2 * model.embedding_parameters
    ends = embedding + (0 if model.tied else head)
    last_norm = 2 * model.norm_parameters
    weights = (model.layers * (attention + model.experts * expert) + ends) / devices + model.layers * whole + last_norm
    active = attention + touched_experts(model, chats.batch) * expert
    read = (model.layers * active + head) / devices + model.layers * whole + last_norm
    cache = cache_bytes(model, devices) * chats.context * chats.batch
    buffers = hccl_buffers(Layout(devices, 1, 1, 1, 1, 0, "none", 1, 1))
    return Load(weights, cache, buffers, read + cache)


def cache_bytes(model: Model, devices: int) -> float:
    """Bytes of one token's keys and values on one device, in 16 bits."""
    heads = max(1, model.kv_heads // devices)
    return 2.0 * 2 * model.layers * heads * model.head_width


def touched_experts(model: Model, batch: int) -> float:
    """Experts of a layer that at least one of ``batch`` tokens is led to, as expected if each is chosen as often."""
    if model.experts == 1:
        return 1.0
    return model.experts * (1 - (1 - model.top_k / model.experts) ** batch)
