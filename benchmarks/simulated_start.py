"""Claim: a program on the simulated NPU starts less than 1 s later than its imports of torch and torch_npu take.

    python benchmarks/simulated_start.py [--pairs N]

Compares `npuport run --sim -- python -c "import torch"` with the same import over the stand-in for CANN alone, without
npuport's kernels and references; everything is compiled before. CPU seconds of the commands and their children; the
median of the differences of the pairs counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys

from npuport.sim import environment

GOAL_S = 1.0
PROGRAM = [sys.executable, "-c", "import torch, torch_npu; torch.ones(1, device='cpu')"]


def cpu_seconds(command: list[str], variables: dict[str, str]) -> float:
    """User and system seconds of a command and its children. Raises CalledProcessError when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    whole = {**os.environ, "OMP_NUM_THREADS": "1"}
    without = {name: value for name, value in environment().items() if name not in ("NPUPORT_SIM", "PYTHONPATH")}
    bare = {**whole, **without}
    simulated = [sys.executable, "-m", "npuport", "run", "--sim", "--", *PROGRAM]
    found = [(cpu_seconds(PROGRAM, bare), cpu_seconds(simulated, whole)) for _ in range(options.pairs + 1)][1:]
    torch_npu, npuport = (statistics.median(column) for column in zip(*found, strict=True))
    share = statistics.median(ours - floor for floor, ours in found)
    print(f"import of torch and torch_npu {torch_npu:.2f} s of CPU, the same on the simulated NPU {npuport:.2f} s")
    print(f"npuport's share = {share:.2f} s (goal: less than {GOAL_S:g})")


if __name__ == "__main__":
    main()
