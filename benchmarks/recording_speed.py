"""Claim: recording what a simulated run does costs at most half of the run again.

    python benchmarks/recording_speed.py [--pairs 7] [--steps 20]

Trains a small transformer (2 layers, width 128, batch 8 x 64) on the simulated NPU, each step with one `loss.item()`,
and prints the processor time of the steps with recording as a multiple of the time without: the median over pairs of
runs in one process, first in one order and then in the other.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time

from npuport.sim import environment

TRAIN = "--train-here"


def train(pairs: int, steps: int) -> list[float]:
    """Ratios, one for each pair."""
    import torch

    from npuport.sim import recording

    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).npu()
    optimizer = torch.optim.AdamW(model.parameters())

    def seconds(recorded: bool) -> float:
        with recording() if recorded else contextlib.nullcontext():
            start = time.process_time()
            for _ in range(steps):
                loss = model(torch.randn(8, 64, 128).npu()).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                loss.item()
            return time.process_time() - start

    seconds(True), seconds(False)
    ratios = []
    for pair in range(pairs):
        if pair % 2:
            plain, recorded = seconds(False), seconds(True)
        else:
            recorded, plain = seconds(True), seconds(False)
        ratios.append(recorded / plain)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument(TRAIN, action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.train_here:
        command = [sys.executable, __file__, TRAIN, f"--pairs={arguments.pairs}", f"--steps={arguments.steps}"]
        subprocess.run(command, env={**os.environ, **environment(), "OMP_NUM_THREADS": "1"}, check=True)
        return
    ratios = train(arguments.pairs, arguments.steps)
    print(f"recorded / not recorded: {statistics.median(ratios):.3f} (of {sorted(round(r, 3) for r in ratios)})")


if __name__ == "__main__":
    main()
