"""Claim: a large tree is read within 500 MB of memory, and nearly as many times faster as there are processors.

    python benchmarks/analysis_scale.py DIRECTORY [--jobs N]

Runs `npuport analyze` and `npuport convert` on the tree in one process and in N (one per processor by default), without
a cache. Prints the seconds that passed, and the peak of the memory of all processes together: as PSS, in which a page
that several processes share counts once in all, and as RSS, in which it counts once for each. Linux only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_EVERY = 0.1  # seconds between two looks at the memory


@dataclass(frozen=True)
class Run:
    """What one command took."""

    seconds: float
    pss: float  # MB, the highest sum over all processes
    rss: float


def measured(command: list[str]) -> Run:
    """Run a command and watch the memory of its processes.

    Raises:
        SystemExit: when the command misuses its input (exit code 2 or a signal).
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pss = rss = 0.0
    while process.poll() is None:
        parts = [memory(pid) for pid in family(process.pid)]
        pss, rss = max(pss, sum(part[0] for part in parts)), max(rss, sum(part[1] for part in parts))
        time.sleep(_EVERY)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Run(time.perf_counter() - start, pss, rss)


def family(pid: int) -> list[int]:
    """A process and its children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has just ended
        return []
    return [pid, *(one for child in children for one in family(int(child)))]


def memory(pid: int) -> tuple[float, float]:
    """PSS and RSS of a process in MB; nothing for one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    figures = {name: int(rest.split()[0]) / 1000 for name, _, rest in (line.partition(":") for line in lines[1:])}
    return figures.get("Pss", 0.0), figures.get("Rss", 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    tree = str(arguments.directory)
    npuport = [sys.executable, "-m", "npuport"]
    for name, options in (("analyze", ["--fail-on", "never"]), ("convert", ["--check"])):
        alone = 0.0
        for jobs in dict.fromkeys((1, arguments.jobs)):
            run = measured([*npuport, name, tree, "--no-cache", "-j", str(jobs), *options])
            alone = alone or run.seconds
            print(
                f"{name:8} {jobs} jobs: {run.seconds:5.1f} s, {alone / run.seconds:.2f} times as fast as 1; "
                f"memory {run.pss:.0f} MB (PSS), {run.rss:.0f} MB (RSS)"
            )


if __name__ == "__main__":
    main()
