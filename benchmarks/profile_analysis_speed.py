"""Claim: npuport analyses a profile in a sixth of the CPU time of the vendor's analyser, in two thirds of its memory.

    python -m venv peer && peer/bin/pip install msprof-analyze==26.2.0
    python benchmarks/profile_analysis_speed.py --peer peer/bin/msprof-analyze [--events 1000000]

Writes a profile (generate_profile.py) into a temporary folder and has both analyse it: `npuport perf analyze` and
`msprof-analyze advisor all`. Prints CPU seconds and peak memory (RSS, children included) of each, and their ratios.
Without --peer npuport's figures alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from generate_profile import write_profile


@dataclass(frozen=True)
class Cost:
    """CPU seconds and peak memory in MB."""

    seconds: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.seconds:7.1f} s CPU {self.megabytes:8.0f} MB"


def cost_of(command: list[str], folder: Path) -> Cost:
    """What a command takes; its output is thrown away."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="the program msprof-analyze")
    parser.add_argument("--events", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        profile = write_profile(folder / "profiles", arguments.events)
        size = (profile / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").stat().st_size
        print(f"{arguments.events:,} events, trace of {size / 1e6:.0f} MB")
        ours = cost_of([sys.executable, "-m", "npuport", "perf", "analyze", str(profile)], folder)
        print(f"npuport perf analyze        {ours}")
        if arguments.peer is not None:
            peer = [str(arguments.peer.absolute()), "advisor", "all", "-d", str(profile), "-o", str(folder / "peer")]
            (folder / "peer").mkdir()
            theirs = cost_of(peer, folder)
            print(f"msprof-analyze advisor all  {theirs}")
            time, memory = ours.seconds / theirs.seconds, ours.megabytes / theirs.megabytes
            print(f"ratio: {time:.2f} of the time, {memory:.2f} of the memory")


if __name__ == "__main__":
    main()
