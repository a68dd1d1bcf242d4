"""Claim: ten training steps of a 10M-parameter transformer cost on the simulated NPU at most 1.15 times the CPU run.

    python benchmarks/simulated_training.py [--pairs N]

Both run in one process and alternate, on one thread; what counts is the process's CPU time (user + system), which other
programs on the machine do not change much. Prints the median of the ratios of the pairs, and the losses of both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

GOAL = 1.15
VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 8192, 320, 5, 6, 128, 8


def train(pairs: int) -> None:
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            batch, length, _ = x.shape
            q, k, v = self.qkv(self.before(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
            return x + self.down(functional.gelu(self.up(self.after(x))))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(LAYERS))), nn.LayerNorm(WIDTH)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
            return functional.linear(self.norm(self.blocks(x)), self.words.weight)

    class Run:
        def __init__(self, device: str) -> None:
            torch.manual_seed(0)
            self.model = Model().to(device)
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
            self.tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1)).to(device)

        def steps(self, count: int) -> tuple[float, float]:
            """CPU seconds, and the last loss."""
            begin = time.process_time()
            for _ in range(count):
                logits = self.model(self.tokens[:, :-1])
                loss = functional.cross_entropy(logits.flatten(0, 1), self.tokens[:, 1:].flatten())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            last = loss.item()
            return time.process_time() - begin, last

    cpu, npu = Run("cpu"), Run("npu")
    print(f"{sum(p.numel() for p in cpu.model.parameters()):,} parameters")
    cpu.steps(2), npu.steps(2)
    ratios = []
    for _ in range(pairs):
        (cpu_s, cpu_loss), (npu_s, npu_loss) = cpu.steps(10), npu.steps(10)
        ratios.append(npu_s / cpu_s)
        print(f"CPU {cpu_s:.2f} s, loss {cpu_loss:.5f}; simulated NPU {npu_s:.2f} s, loss {npu_loss:.5f}", flush=True)
    print(f"simulated NPU = {statistics.median(ratios):.3f} x the CPU (goal: at most {GOAL})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return train(options.pairs)
    command = [sys.executable, __file__, "--inside", "--pairs", str(options.pairs)]
    run = [sys.executable, "-m", "npuport", "run", "--sim", "--", *command]
    raise SystemExit(subprocess.run(run, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False).returncode)


if __name__ == "__main__":
    main()
