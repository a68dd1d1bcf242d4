"""Claim: one elementwise operator costs on the simulated NPU at most 3 times what it costs on the CPU.

    python benchmarks/simulated_operator.py [--pairs N]

Adds two vectors of 64 elements, so that nearly all is overhead. CPU and simulated NPU alternate in one process; the
median of the ratios of the pairs counts, in CPU time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

GOAL = 3.0
CALLS = 20_000


def measure(pairs: int) -> None:
    import torch

    def microseconds(device: str) -> float:
        x, y = torch.ones(64, device=device), torch.ones(64, device=device)
        for _ in range(CALLS // 10):
            torch.add(x, y)
        begin = time.process_time()
        for _ in range(CALLS):
            torch.add(x, y)
        return (time.process_time() - begin) / CALLS * 1e6

    found = [(microseconds("cpu"), microseconds("npu")) for _ in range(pairs)]
    cpu, npu = (statistics.median(column) for column in zip(*found, strict=True))
    ratio = statistics.median(npu / cpu for cpu, npu in found)
    print(f"torch.add of 64 elements: CPU {cpu:.2f} µs, simulated NPU {npu:.2f} µs")
    print(f"simulated NPU = {ratio:.2f} x the CPU (goal: at most {GOAL:g})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return measure(options.pairs)
    command = [sys.executable, __file__, "--inside", "--pairs", str(options.pairs)]
    run = [sys.executable, "-m", "npuport", "run", "--sim", "--", *command]
    raise SystemExit(subprocess.run(run, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False).returncode)


if __name__ == "__main__":
    main()
