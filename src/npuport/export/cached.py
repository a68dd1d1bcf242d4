"""A language model of transformers whose keys and values of earlier tokens are inputs and outputs."""

from __future__ import annotations

from typing import Any

import torch

from npuport.errors import UserError
from npuport.export.inputs import Input


class Cached(torch.nn.Module):
    """Takes ids of new tokens (batch, new), a mask of all tokens (batch, past + new), and for each layer the keys and
    values of earlier tokens (batch, heads, past, size). Gives logits, and keys and values of all tokens.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, *past: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """The outputs by name, as Optimum names them."""
        from transformers.cache_utils import DynamicCache

        cache = DynamicCache()
        for layer, (key, value) in enumerate(zip(past[::2], past[1::2], strict=True)):
            cache.update(key, value, layer)
        returned = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        outputs = {"logits": returned.logits}
        for layer, kept in enumerate(returned.past_key_values.layers):
            outputs[f"present.{layer}.key"], outputs[f"present.{layer}.value"] = kept.keys, kept.values
        return outputs


def with_cache(model: Any) -> tuple[Cached, tuple[Input, ...]]:
    """The model with its cache as tensors, and the inputs that it then takes.

    Raises:
        UserError: the model has no such cache.
    """
    try:
        with torch.no_grad():
            returned = model(input_ids=torch.zeros(1, 2, dtype=torch.long), use_cache=True)
        layers = [(kept.keys, kept.values) for kept in returned.past_key_values.layers]
        vocabulary = returned.logits.shape[-1]
    except Exception as error:
        raise UserError(
            "--cache is for decoders of transformers, and {model} has no cache of keys and values: {reason}.",
            model=type(model).__name__,
            reason=f"{type(error).__name__}: {error}",
        ) from error
    inputs = [
        Input("input_ids", "int64", ("batch", "new"), 0, vocabulary - 1),
        Input("attention_mask", "int64", ("batch", "past+new"), 1, 1),
    ]
    for layer, tensors in enumerate(layers):
        for name, tensor in zip(("key", "value"), tensors, strict=True):
            axes = ("batch", str(tensor.shape[1]), "past", str(tensor.shape[3]))
            inputs.append(Input(f"past_key_values.{layer}.{name}", "float32", axes))
    return Cached(model).eval(), tuple(inputs)
