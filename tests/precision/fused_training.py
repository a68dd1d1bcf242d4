"""A small model computed with torch_npu's fused operators and without, recorded; the folder is the argument."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch_npu
from torch import nn

from npuport.precision import record

WIDTH, HEADS, LENGTH = 32, 4, 16


class Layer(nn.Module):
    def __init__(self, is_fused: bool, scale: float) -> None:
        super().__init__()
        self.is_fused, self.scale = is_fused, scale / (WIDTH // HEADS) ** 0.5
        self.weight = nn.Parameter(torch.ones(WIDTH))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.normed(x)).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(self.mixed(q, k, v).transpose(1, 2).reshape(x.shape))
        gate = self.up(x)
        if self.is_fused:
            return x + self.down(torch_npu.npu_swiglu(gate))
        one, other = gate.chunk(2, -1)
        return x + self.down(nn.functional.silu(one) * other)

    def normed(self, x: torch.Tensor) -> torch.Tensor:
        if self.is_fused:
            return torch_npu.npu_rms_norm(x, self.weight, 1e-5)[0]
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight

    def mixed(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device=q.device).triu(1)
        if self.is_fused:
            operands = q.contiguous(), k.contiguous(), v.contiguous()
            return torch_npu.npu_fusion_attention(*operands, HEADS, "BNSD", atten_mask=mask, scale=self.scale)[0]
        return ((q @ k.transpose(-2, -1)) * self.scale).masked_fill(mask, float("-inf")).softmax(-1) @ v


def step(folder: Path, is_fused: bool, scale: float = 1.0) -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(*(Layer(is_fused, scale) for _ in range(2))).npu()
    x = torch.randn(2, LENGTH, WIDTH).npu()
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3, fused=is_fused, foreach=False)
    with record(folder):
        layers(x).square().mean().backward()
        optimizer.step()


step(Path(sys.argv[1]) / "parts", is_fused=False)
step(Path(sys.argv[1]) / "fused", is_fused=True)
step(Path(sys.argv[1]) / "scaled", is_fused=True, scale=1.01)
