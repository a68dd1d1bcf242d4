"""Models that no threshold was set for: looked at only to see whether the thresholds hold."""

from __future__ import annotations

import torch
from fault_models import Case
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            one.view(batch, length, self.heads, -1).transpose(1, 2) for one in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        attended = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Vit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 48, 4, stride=4)
        self.first = nn.Parameter(0.02 * torch.randn(1, 1, 48))
        self.places = nn.Parameter(0.02 * torch.randn(1, 17, 48))
        self.blocks = nn.Sequential(Attention(48, 4), Attention(48, 4))
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, 10)

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(x.shape[0], -1, -1), x), 1) + self.places
        return F.cross_entropy(self.head(self.norm(self.blocks(x))[:, 0]), labels, label_smoothing=0.1)


class Translator(nn.Module):
    """Sequences to sequences: a GRU that reads, a GRU cell that writes and looks back."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(40, 32), nn.Embedding(40, 32)
        self.reader, self.writer = nn.GRU(32, 32, batch_first=True), nn.GRUCell(64, 32)
        self.head = nn.Linear(64, 40)

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        source, target = batch
        read, state = self.reader(self.source(source))
        state, losses = state[0], []
        for at in range(target.shape[1] - 1):
            weights = torch.bmm(read, state[:, :, None]).softmax(1)
            seen = (weights * read).sum(1)
            state = self.writer(torch.cat((self.target(target[:, at]), seen), -1), state)
            losses.append(F.cross_entropy(self.head(torch.cat((state, seen), -1)), target[:, at + 1]))
        return torch.stack(losses).mean()


class Llama(nn.Module):
    """The Llama of transformers, small and with random weights."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(
            vocab_size=96, hidden_size=48, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=32, attn_implementation="eager",
        )  # fmt: skip
        self.llama = LlamaForCausalLM(config)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.llama(input_ids=tokens, labels=tokens).loss


HELD_OUT_CASES = {
    "vit": Case(Vit, lambda: (torch.randn(6, 3, 16, 16), torch.randint(0, 10, (6,)))),
    "translator": Case(Translator, lambda: (torch.randint(0, 40, (6, 7)), torch.randint(0, 40, (6, 6)))),
    "llama": Case(Llama, lambda: torch.randint(0, 96, (3, 16))),
}
