"""What the forward pass keeps for the backward pass, in bytes of one token (Korthikanti et al. 2022, section 4).

Their layer keeps ``34 h + 5 a s`` bytes a token in 16 bits. Term by term, and what changes for newer models
(h hidden, q = heads x head width, k = key/value heads x head width, f inner width, s sequence):

========================  ==================  ==================================================================
term                      Korthikanti         here
========================  ==================  ==================================================================
norm before attention     2h                  2h, and fp32 statistics
input of Q, K, V          2h                  2h
Q, K, V                   2h + 2h + 2h        2q + 2k + 2k: grouped queries have fewer keys and values
scores, softmax, dropout  5 a s               flash attention: none; the maximum and the sum of each row, which
                                              npu_fusion_attention keeps eight times in fp32: 2 x 8 x 4 a = 64 a
input of the projection   2h                  2q, which is also the output that flash attention keeps
dropout masks             1h + 1h             none: newer models train without dropout
norm before the MLP       2h                  2h, and fp32 statistics
input of the MLP          2h                  2h
activation                8h (f = 4h)         2f; gated: 2f + 2f
input of the last linear  8h                  2f
========================  ==================  ==================================================================

The classes of transformers compute some of these tensor by tensor, and autograd keeps more: see ``_layer_modules``.
"""

from __future__ import annotations

from collections.abc import Mapping

from npuport.llm.planning.layout import Kernels, Masks, Policy, Recompute
from npuport.llm.planning.model import Model

_STATISTICS = 2 * 8 * 4  # of one head
CAUSAL_MASK = 2048 * 2048
"""Bytes of the mask that flash attention takes for causal attention, whatever the sequence."""


def layer_activations(
    model: Model, policy: Policy, recompute: Recompute, sequence: int, batch: int
) -> Mapping[str, float]:
    """Bytes that one layer keeps of one token, by term, before any division over devices.

    ``batch`` counts the sequences at once, which share what does not depend on their number. "selective" computes the
    core of attention again (section 5); with flash attention that frees its statistics alone.
    """
    if recompute == "full":
        return {"layer input": 2 * model.hidden}
    terms = _layer_fused(model) if policy.kernels == "fused" else _layer_modules(model, policy.masks, sequence, batch)
    if recompute == "selective":
        return {name: size for name, size in terms.items() if name != "attention statistics"}
    return terms


def _layer_fused(model: Model) -> dict[str, float]:
    hidden, query, key, ffn = model.hidden, model.query_width, model.key_width, model.ffn
    return {
        "norms": 2 * (2 * hidden + 4),
        "input of query, key, value": 2 * hidden,
        "query, key, value": 2 * query + 4 * key,
        "attention statistics": _STATISTICS * model.heads,
        "attention output": 2 * query,
        "input of the MLP": _mlp_input(model),
        "MLP": (6 if model.gated else 4) * ffn * model.top_k,
    }


def _layer_modules(model: Model, masks: Masks, sequence: int, batch: int) -> dict[str, float]:
    """As the classes of transformers 4.57 and 5.24 compute; each term is a tensor that autograd saves.

    RMSNorm is composed: the input in fp32 (4h), the reciprocal root (4), the product in 16 bits before the weight (2h);
    LayerNorm is one operator (2h, mean and reciprocal root). The output of attention is kept twice: as attention has
    it, and copied to the projection's order. A gate is kept before and after silu, with the other half and their
    product (8f); gelu_new is composed of four kept tensors and the product (10f); gelu is one operator (4f).
    """
    hidden, query, ffn = model.hidden, model.query_width, model.ffn
    norm = 2 * hidden + 4 if model.biases else 6 * hidden + 4
    return {
        "norms": 2 * norm,
        "input of query, key, value": 2 * hidden,
        **_masked_attention(model, masks, sequence, batch),
        "attention statistics": _STATISTICS * model.heads,
        "attention output": 4 * query,
        "input of the MLP": _mlp_input(model),
        "MLP": (8 if model.gated else 10 if model.activation == "gelu_new" else 4) * ffn * model.top_k,
    }


def _masked_attention(model: Model, masks: Masks, sequence: int, batch: int) -> dict[str, float]:
    """Query, key, value and mask of one token; of ``masks`` "either", whichever is more.

    Given masks (transformers 4 on an NPU, and 5 where a batch is padded): torch_npu inverts the mask in each layer into
    a new one, 1 byte for each token pair, s bytes a token; keys and values are repeated for query heads (2q each).
    Causal (transformers 5 where nothing is padded): keys and values stay as they are (2k each), and torch_npu makes a
    mask of 2048 x 2048 bytes in each layer.
    """
    query, key = model.query_width, model.key_width
    given: dict[str, float] = {"query, key, value": 6 * query, "attention mask": sequence}
    causal: dict[str, float] = {
        "query, key, value": 2 * query + 4 * key,
        "attention mask": CAUSAL_MASK / (sequence * batch),
    }
    choice = {"given": (given,), "causal": (causal,), "either": (given, causal)}[masks]
    return max(choice, key=lambda terms: sum(terms.values()))


def _mlp_input(model: Model) -> int:
    """Experts keep the tokens before and after sorting by expert, and their outputs for the weighted sum."""
    return 2 * model.hidden * (1 if model.experts == 1 else 1 + 2 * model.top_k)


def layer_working(model: Model) -> float:
    """Bytes of one token for gradients while the MLP's backward runs: of its input, and of each inner tensor."""
    return 2 * model.hidden + 2 * model.ffn * model.top_k * (3 if model.gated else 2)


def head_activations(model: Model, kernels: Kernels) -> Mapping[str, float]:
    """Bytes of one token from the last norm to the loss, at their peak: when the loss's gradient is computed.

    Fused (vocabulary-parallel loss): logits in 16 bits and the softmax in fp32, in whose place the gradient goes.
    Modules: logits in 16 bits, which the model's output holds; the logarithms of the softmax, the gradient of the loss
    and that of the softmax, all in fp32.
    """
    hidden, vocabulary = model.hidden, model.vocabulary
    if kernels == "fused":
        return {"last norm": 4 * hidden + 4, "logits and loss": 6 * vocabulary}
    norm = 4 * hidden + 4 if model.biases else 8 * hidden + 4
    return {"last norm": norm, "logits and loss": 14 * vocabulary}
