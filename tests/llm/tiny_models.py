"""A language model that is made in a moment: two layers, random weights, a tokenizer of bytes."""

from __future__ import annotations

import json
from pathlib import Path

CONFIG = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 320,
    "max_position_embeddings": 512,
    "initializer_range": 0.5,
    "tie_word_embeddings": True,
    "dtype": "float32",
    "bos_token_id": 256,
    "eos_token_id": 257,
}
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def write_config(folder: Path, **changed: object) -> Path:
    """A folder with nothing but the config."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changed}), encoding="utf-8")
    return folder


def write_tokenizer(folder: Path, template: str | None = TEMPLATE) -> None:
    """Each byte is a token; so are the marks of the template."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(alphabet)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    marks = ["<|begin|>", "<|stop|>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>"]
    inner.add_special_tokens([AddedToken(mark, special=True) for mark in marks])
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<|begin|>", eos_token="<|stop|>", pad_token="<|stop|>"
    )
    made.chat_template = template
    made.save_pretrained(folder)


def write_model(folder: Path, template: str | None = TEMPLATE) -> Path:
    """Config, weights and tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    write_config(folder)
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    model.save_pretrained(folder)
    write_tokenizer(folder, template)
    return folder
