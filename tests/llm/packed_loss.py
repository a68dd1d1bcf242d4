"""Prints the summed loss of dialogues one by one, and of the same packed, by a model that knows only position ids."""

from __future__ import annotations

import sys
from typing import Any

sys.modules["torch_npu"] = None  # type: ignore[assignment]  # transformers would load it where CANN may be missing

import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

from npuport.llm.packing import dialogues  # noqa: E402
from npuport.llm.packing.ragged import ragged  # noqa: E402
from npuport.llm.packing.samples import IGNORED  # noqa: E402

WORDS = 64
torch.manual_seed(0)
config = LlamaConfig(vocab_size=WORDS, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
model = LlamaForCausalLM(config).eval()


def loss(ids: Any, labels: Any, positions: Any = None) -> float:
    with torch.no_grad():
        logits = model(input_ids=ids, position_ids=positions, use_cache=False).logits
    flat = logits[:, :-1].reshape(-1, WORDS)
    return float(torch.nn.functional.cross_entropy(flat, labels[:, 1:].reshape(-1), reduction="sum"))


def tensor(values: Any) -> Any:
    return torch.tensor(np.asarray(values), dtype=torch.int64)


generator = np.random.default_rng(1)
rows = [generator.integers(1, WORDS, length).tolist() for length in (7, 5, 9, 4, 6)]
masks = [[place >= 2 for place in range(len(row))] for row in rows]
samples = dialogues.pack(ragged(rows, masks), 16, 0)
assert len(samples) < len(rows)
alone = sum(loss(tensor([row]), tensor([np.where(mask, row, IGNORED)])) for row, mask in zip(rows, masks, strict=True))
print(alone, loss(tensor(samples.input_ids), tensor(samples.labels), tensor(samples.position_ids)))
