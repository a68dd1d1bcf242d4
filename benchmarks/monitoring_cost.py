"""What `npuport run --monitor` costs: a training step of a small GPT with it, as a multiple of the step without.

Processor time on one thread, the least of several rounds. On an NPU synchronisation would count too; this measures the
work only.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
from torch import nn
from torch.nn import functional as F

from npuport.precision.training_state.recording import monitoring

WIDTH, LAYERS, WORDS, LENGTH, BATCH = 256, 4, 1000, 128, 8
ROUNDS, STEPS = 4, 8


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        hidden = self.layers(self.words(ids) + self.places.weight[: ids.shape[1]], mask, is_causal=True)
        return F.cross_entropy(self.head(hidden)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def seconds(model: nn.Module, optimizer: torch.optim.Optimizer, ids: torch.Tensor) -> float:
    """Processor time of a step."""
    start = time.process_time()
    for _ in range(STEPS):
        model(ids).backward()
        optimizer.step()
        optimizer.zero_grad()
    return (time.process_time() - start) / STEPS


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, ids = Gpt(), torch.randint(0, WORDS, (BATCH, LENGTH))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    seconds(model, optimizer, ids)
    plain, watched = [], []
    for _ in range(ROUNDS):
        plain.append(seconds(model, optimizer, ids))
        with tempfile.TemporaryDirectory() as folder, monitoring(Path(folder)):
            watched.append(seconds(model, optimizer, ids))
    size = sum(one.numel() for one in model.parameters()) / 1e6
    print(f"GPT of {size:.1f} M parameters, {BATCH} x {LENGTH} tokens: {min(plain) * 1000:.0f} ms a step")
    print(f"monitored: {min(watched) * 1000:.0f} ms, {min(watched) / min(plain):.3f} x")


if __name__ == "__main__":
    main()
