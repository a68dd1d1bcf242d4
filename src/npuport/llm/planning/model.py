"""The sizes of a decoder-only transformer that memory and communication depend on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npuport.errors import UserError


@dataclass(frozen=True)
class Model:
    """A decoder-only transformer.

    ``ffn`` is the inner width of one MLP (of one expert where ``experts`` > 1). ``experts`` 1 is a dense model.
    ``positions`` counts learned positions (0: rotary). ``biases`` says whether every linear layer and norm has one.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    ffn: int
    vocabulary: int
    tied: bool = False
    gated: bool = True
    activation: str = "silu"
    biases: bool = False
    positions: int = 0
    experts: int = 1
    top_k: int = 1

    @property
    def query_width(self) -> int:
        """Elements of all heads' queries of one token."""
        return self.heads * self.head_width

    @property
    def key_width(self) -> int:
        """Elements of all heads' keys (or values) of one token."""
        return self.kv_heads * self.head_width

    @property
    def attention_parameters(self) -> int:
        """Of one layer: the query, key, value and output projections."""
        weights = self.hidden * (2 * self.query_width + 2 * self.key_width)
        return weights + (self.query_width + 2 * self.key_width + self.hidden if self.biases else 0)

    @property
    def expert_parameters(self) -> int:
        """Of one MLP (one expert)."""
        weights = self.hidden * self.ffn * (3 if self.gated else 2)
        return weights + (self.ffn * (2 if self.gated else 1) + self.hidden if self.biases else 0)

    @property
    def norm_parameters(self) -> int:
        """Of one norm."""
        return self.hidden * (2 if self.biases else 1)

    @property
    def router_parameters(self) -> int:
        """Of one layer; 0 in a dense model."""
        return self.hidden * self.experts if self.experts > 1 else 0

    @property
    def layer_parameters(self) -> int:
        """Of one layer with all its experts."""
        shared = self.attention_parameters + 2 * self.norm_parameters + self.router_parameters
        return shared + self.experts * self.expert_parameters

    @property
    def embedding_parameters(self) -> int:
        """The table of tokens, and that of learned positions."""
        return (self.vocabulary + self.positions) * self.hidden

    @property
    def parameters(self) -> int:
        """Of the whole model; a tied head counts once."""
        head = 0 if self.tied else self.vocabulary * self.hidden
        return self.layers * self.layer_parameters + self.embedding_parameters + head + self.norm_parameters


def model_from(path: Path) -> Model:
    """The model that a Hugging Face ``config.json`` (or the folder with it) describes.

    Raises:
        UserError: the file cannot be read, or lacks a size.
    """
    place = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError("{path} cannot be read: {reason}.", path=place, reason=error.strerror) from error
    except ValueError as error:
        raise UserError(
            "{path} holds no JSON object: give the config.json of a Hugging Face model, or the sizes.", path=place
        ) from error
    if not isinstance(config, dict):
        raise UserError(
            "{path} holds no JSON object: give the config.json of a Hugging Face model, or the sizes.", path=place
        )
    return _read(config, place)


def _read(config: Mapping[str, Any], place: Path) -> Model:
    kind = str(config.get("model_type", ""))
    if kind not in _KNOWN:
        raise UserError(
            "{path}: model_type {kind} is not known here ({known}): give the sizes as options instead.",
            path=place,
            kind=kind or "(none)",
            known=", ".join(sorted(_KNOWN)),
        )
    if kind == "gpt2":
        hidden = _size(config, place, "n_embd")
        heads = _size(config, place, "n_head")
        return Model(
            layers=_size(config, place, "n_layer"),
            hidden=hidden,
            heads=heads,
            kv_heads=heads,
            head_width=hidden // heads,
            ffn=config.get("n_inner") or 4 * hidden,
            vocabulary=_size(config, place, "vocab_size"),
            tied=config.get("tie_word_embeddings", True),
            gated=False,
            activation=config.get("activation_function", "gelu_new"),
            biases=True,
            positions=_size(config, place, "n_positions"),
        )
    hidden = _size(config, place, "hidden_size")
    heads = _size(config, place, "num_attention_heads")
    if config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1:
        raise UserError("{path}: layers that differ are not planned for here.", path=place)
    experts = next((int(config[name]) for name in _EXPERTS if config.get(name)), 1)
    width = "moe_intermediate_size" if experts > 1 and "moe_intermediate_size" in config else "intermediate_size"
    return Model(
        layers=_size(config, place, "num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_width=config.get("head_dim") or hidden // heads,
        ffn=_size(config, place, width),
        vocabulary=_size(config, place, "vocab_size"),
        tied=config.get("tie_word_embeddings", False),
        activation=config.get("hidden_act", "silu"),
        experts=experts,
        top_k=config.get("num_experts_per_tok", 1) if experts > 1 else 1,
    )


# Those whose layers are attention and one (gated) MLP or a set of equal experts, nothing else of weight.
_KNOWN = frozenset({"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gpt2"})
_EXPERTS = ("num_local_experts", "num_experts")


def _size(config: Mapping[str, Any], place: Path, name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or value < 1:
        raise UserError("{path}: {name} is missing or no positive number.", path=place, name=name)
    return value
