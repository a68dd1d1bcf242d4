"""Four small models with a training step each, for faults to be put into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(64, 64), nn.Embedding(24, 64)
        self.blocks = nn.ModuleList(Block(64, 4) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(64), nn.Linear(64, 64)
        self.register_buffer("mask", torch.ones(24, 24, dtype=torch.bool).triu(1))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x, self.mask)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AvgPool2d(2),
        )  # fmt: skip
        self.head = nn.Linear(32 * 16, 10)

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        return F.cross_entropy(self.head(self.layers(images).flatten(1)), labels)


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.cell = nn.Embedding(32, 48), nn.LSTMCell(48, 48)
        self.head = nn.Linear(48, 32)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x, losses = self.tokens(tokens), []
        state = (torch.zeros(tokens.shape[0], 48), torch.zeros(tokens.shape[0], 48))
        for at in range(tokens.shape[1] - 1):
            state = self.cell(x[:, at], state)
            losses.append(F.cross_entropy(self.head(state[0]), tokens[:, at + 1]))
        return torch.stack(losses).mean()


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.enter, self.down = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(4, 16), nn.GroupNorm(4, 32)
        self.middle = nn.Conv2d(32, 32, 3, padding=1)
        self.up, self.leave = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.Conv2d(32, 1, 3, padding=1)

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> torch.Tensor:
        image, noise, angles = batch
        embedded = self.time(torch.cat((angles.sin(), angles.cos()), -1))
        first = F.silu(self.norm1(self.enter(image + noise)))
        deep = F.silu(self.norm2(self.down(first))) + embedded[:, :, None, None]
        deep = deep + F.silu(self.middle(deep))
        return F.mse_loss(self.leave(torch.cat((self.up(deep), first), 1)), noise)


@dataclass(frozen=True)
class Case:
    """A model and the batch of its step."""

    model: Callable[[], nn.Module]
    batch: Callable[[], object]


CASES = {
    "gpt": Case(Gpt, lambda: torch.randint(0, 64, (4, 24))),
    "cnn": Case(Cnn, lambda: (torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,)))),
    "lstm": Case(Lstm, lambda: torch.randint(0, 32, (8, 6))),
    "unet": Case(UNet, lambda: (torch.randn(4, 1, 16, 16), torch.randn(4, 1, 16, 16), torch.randn(4, 8))),
}
