"""The whole OpInfo database on the simulated NPU against the CPU (``make opinfo``).

    python tests/sim/opinfo/run.py [--jobs N] [--report FILE] [options of python tests/sim/opinfo]

Exit code 1: a failure has no reason in reasons.csv, or fewer than 99.5 % of the samples are equal.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import report
from npuport.sim import environment

GOAL = 0.995
# (dtypes, samples of an operator): float32 with all, the others for what their type changes.
PASSES = (("float32", 10**6), ("float16,bfloat16,int64,bool,complex64", 60))


def run_parts(jobs: int, options: list[str], folder: Path) -> list[dict[str, Any]]:
    """The cases of all parts, ``jobs`` at a time. Raises SystemExit when a part dies."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment()}
    cases = []
    for dtypes, samples in PASSES:
        running = []
        for part in range(jobs):
            chosen = ["--dtypes", dtypes, "--samples", str(samples), "--part", f"{part}/{jobs}", *options]
            found, said = folder / f"{dtypes}-{part}.json", folder / f"{dtypes}-{part}.txt"
            with found.open("w") as output, said.open("w") as errors:
                command = [sys.executable, str(Path(__file__).parent), *chosen]
                process = subprocess.Popen(command, env=variables, stdout=output, stderr=errors)
            running.append((process, found, said))
        for process, found, said in running:
            if process.wait():
                raise SystemExit(f"a part ended with exit code {process.returncode}:\n{said.read_text()[-2000:]}")
            cases += json.loads(found.read_text().splitlines()[-1])
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--report", type=Path, default=Path("build/opinfo.json"))
    options, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        found = report.build(run_parts(options.jobs, rest, Path(folder)), report.known_reasons())
    options.report.parent.mkdir(parents=True, exist_ok=True)
    aside = options.report.with_suffix(".part")
    aside.write_text(json.dumps(found.as_json(), indent=1) + "\n", encoding="utf-8")
    aside.rename(options.report)
    print(report.table(found))
    print(f"\n  every failure: {options.report}")
    raise SystemExit(bool(found.unexplained) or found.share < GOAL)


if __name__ == "__main__":
    main()
