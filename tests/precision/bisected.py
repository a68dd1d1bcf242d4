"""A training on the CPU, where SiLU is too large in float32: what tests of `npuport precision bisect` search for."""

from __future__ import annotations

import sys
from typing import Any

import torch

torch.manual_seed(0)
torch.set_num_threads(1)


def wrong_silu(x: Any) -> Any:
    return x * torch.sigmoid(x) * (3.0 if x.dtype == torch.float32 and x.shape[-1] == 6 else 1.0)


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down, self.act = torch.nn.Linear(4, width), torch.nn.Linear(width, 4), torch.nn.SiLU()

    def forward(self, x: Any) -> Any:
        return x + self.down(self.act(self.up(x)))


if "healthy" not in sys.argv:
    library = torch.library.Library("aten", "IMPL")
    library.impl("silu", wrong_silu, "CPU")
model = torch.nn.Sequential(Block(5), Block(6), torch.nn.LayerNorm(4), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(16, 4)
for step in range(4):
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.6f}")
