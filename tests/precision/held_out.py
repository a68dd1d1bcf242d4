"""Faults in models that no threshold was set for."""

from __future__ import annotations

from typing import Any

import torch
from faults import Fault, as_bfloat16, element, no_bias, noisy, scaled, stale, wrong_eps
from held_out_models import HELD_OUT_CASES
from torch import nn

__all__ = ["HELD_OUT_CASES", "HELD_OUT_FAULTS"]


def wrong_rms_eps(model: nn.Module, batch: Any) -> Any:
    model.llama.model.layers[1].input_layernorm.variance_epsilon = 1e-2
    return batch


def wrong_frequencies(model: nn.Module, batch: Any) -> Any:
    with torch.no_grad():
        model.llama.model.rotary_emb.inv_freq.mul_(1.01)
    return batch


def other_weight(name: str) -> Any:
    def edit(model: nn.Module, batch: Any) -> Any:
        with torch.no_grad():
            model.get_parameter(name).mul_(1.01)
        return batch

    return edit


HELD_OUT_FAULTS = (
    Fault("patches in bfloat16", "vit", "convolution", 0, as_bfloat16),
    Fault("attention 1 % noise", "vit", "_scaled_dot_product_flash_attention_for_cpu", 1, noisy(0.01)),
    Fault("layer norm 0.3 % too large", "vit", "native_layer_norm", 2, scaled(1.003)),
    Fault("one wrong element of gelu's gradient", "vit", "gelu_backward", 0, element(0.5)),
    Fault("missing bias", "vit", edit=no_bias("blocks.1.up"), expected=("mm", "addmm"), module="blocks.1.up"),
    Fault("layer norm eps", "vit", edit=wrong_eps, expected=("native_layer_norm",), module="blocks.0.norm1"),
    Fault("places changed", "vit", edit=other_weight("places"), expected=("add",)),
    Fault("attention's gradient stale", "vit", "_scaled_dot_product_flash_attention_for_cpu_backward", 0, stale),
    Fault("gate in bfloat16", "translator", "sigmoid_", 9, as_bfloat16),
    Fault("softmax 1 % noise", "translator", "_softmax", 2, noisy(0.01)),
    Fault("scores 0.3 % too large", "translator", "bmm", 3, scaled(1.003)),
    Fault("softmax's gradient doubled", "translator", "_softmax_backward_data", 1, scaled(2.0)),
    Fault("one NaN in the state", "translator", "tanh_", 6, element(float("nan"), add=False)),
    Fault("weights changed", "translator", edit=other_weight("head.weight"), expected=("addmm",)),
    Fault("one wrong element of logits", "translator", "addmm", 12, element(3.0)),
    Fault("rms norm 0.3 % too large", "llama", "rsqrt", 2, scaled(1.003)),
    Fault("silu in bfloat16", "llama", "silu", 1, as_bfloat16),
    Fault("one wrong element of a projection", "llama", "mm", 5, element(3.0)),
    Fault("softmax 1 % noise", "llama", "_softmax", 1, noisy(0.01)),
    Fault("silu's gradient doubled", "llama", "silu_backward", 1, scaled(2.0)),
    Fault("rms norm eps", "llama", edit=wrong_rms_eps, expected=("add",)),
    Fault("rotary frequencies", "llama", edit=wrong_frequencies, expected=("bmm", "mul", "_to_copy", "expand")),
    Fault("weight gradient 1 % noise", "llama", "mm", 30, noisy(0.01)),
    Fault("rotation stale", "llama", "cat", 3, stale),
)
